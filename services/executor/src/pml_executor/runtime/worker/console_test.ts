import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { consoleOf, MAX_MESSAGE } from "./console.ts";

Deno.test("lines are what was written, at their level", () => {
  const lines: [string, string][] = [];
  const console = consoleOf((level, message) => lines.push([level, message])) as Console;
  console.log("a", 1, undefined, null, 2n, [undefined, { b: 3n }], Symbol("s"));
  console.warn(new RangeError("far"));
  console.error(function named() {});
  console.debug();
  console.assert(true, "never");
  console.assert(false, "always");
  console.time("x");
  deepStrictEqual(lines, [
    ["info", 'a 1 undefined null 2 [null,{"b":"3"}] Symbol(s)'],
    ["warn", "RangeError: far"],
    ["error", "[Function named]"],
    ["debug", ""],
    ["error", "Assertion failed: always"],
  ]);
  ok(Object.isFrozen(console));
});

Deno.test("long lines are cut and say so", () => {
  let written = "";
  const console = consoleOf((_, message) => void (written = message)) as Console;
  console.log("x".repeat(MAX_MESSAGE + 5));
  strictEqual(written.slice(MAX_MESSAGE), "… (5 more characters)");
  let deep: unknown[] = [];
  for (let i = 0; i < 500; i++) deep = [deep];
  console.log(deep);
  ok(written.startsWith("[RangeError: "));
});

Deno.test("unreadable values do not throw", () => {
  const lines: string[] = [];
  const console = consoleOf((_, message) => lines.push(message)) as Console;
  const trap = () => {
    throw new Proxy({}, { getPrototypeOf: trap });
  };
  console.log(new Proxy({}, { ownKeys: trap, getPrototypeOf: trap }));
  console.log(Object.defineProperty(new Error("x"), "message", { get: trap }));
  console.log({
    get x() {
      throw new RangeError("far");
    },
  });
  deepStrictEqual(lines, ["[a value]", "[a value]", "[RangeError: far]"]);
});
