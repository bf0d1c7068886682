import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { describe, describeLoad, placeIn } from "./failure.ts";

const AT = "data:application/typescript,export%20default......%7D";

Deno.test("the first place in the program's own text counts", () => {
  const stack = [
    "Error: no",
    "    at decide (data:text/typescript,abc......def:12:3)",
    `    at inner (${AT}:3:7)`,
    `    at async default (${AT}:9:1)`,
  ].join("\n");
  deepStrictEqual(placeIn(stack, 20), { line: 3, column: 7, module: null });
  deepStrictEqual(placeIn(`at ${AT}:1:25`, 20), { line: 1, column: 5, module: null });
  const inCapability = "at f (data:application/typescript;capability=12,export......%7D:4:8)";
  deepStrictEqual(placeIn(inCapability, 20), { line: 4, column: 8, module: 12 });
  deepStrictEqual(placeIn("nowhere", 20), { line: null, column: null, module: null });
  deepStrictEqual(placeIn(undefined, 20), { line: null, column: null, module: null });
});

Deno.test("anything thrown is described", () => {
  strictEqual(describe("words", 0).message, "the program threw words");
  strictEqual(describe({ a: 1 }, 0).message, 'the program threw {"a":1}');
  strictEqual(describe(undefined, 0).message, "the program threw null");
  strictEqual(describe(new TypeError("no"), 0).name, "TypeError");
  const hostile = new Error("x");
  Object.defineProperty(hostile, "message", {
    get: () => {
      throw 1;
    },
  });
  Object.defineProperty(hostile, "stack", { value: 7 });
  deepStrictEqual(describe(hostile, 0), {
    name: "Error",
    message: "",
    line: null,
    column: null,
    module: null,
  });
});

Deno.test("a thrown value cannot prevent its report", () => {
  const trap = (): never => {
    throw proxy;
  };
  const proxy: object = new Proxy({}, { getPrototypeOf: trap, ownKeys: trap, get: trap });
  strictEqual(describe(proxy, 0).message, "the program threw a value");
  strictEqual(describe({ toString: trap, [Symbol.toPrimitive]: trap, proxy }, 0).name, "");
});

Deno.test("causes and the errors of an AggregateError are part of the message", () => {
  const chain = new Error("save failed", {
    cause: new TypeError("no such row", { cause: "the disk" }),
  });
  strictEqual(
    describe(chain, 0).message,
    "save failed\ncaused by TypeError: no such row\ncaused by the disk",
  );
  const all = new AggregateError([new Error("a"), new RangeError(""), 7], "All promises failed");
  strictEqual(
    describe(all, 0).message,
    "All promises failed\nerror 1: Error: a\nerror 2: RangeError\nerror 3: 7",
  );
});

Deno.test("reasons are bounded, and a circle of them ends", () => {
  const circle = new Error("outer");
  circle.cause = new Error("inner", { cause: circle });
  strictEqual(describe(circle, 0).message, "outer\ncaused by Error: inner");
  const many = new AggregateError(new Array(1000).fill("x".repeat(9_000)), "many");
  ok(describe(many, 0).message.length <= 4_000);
  for (const [errors, last] of [[10, "error 10: 1"], [11, "…"]] as const) {
    const { message } = describe(new AggregateError(new Array(errors).fill(1), "m"), 0);
    strictEqual(message.split("\n").at(-1), last);
  }
  let deep = new Error("0");
  for (let i = 1; i < 30; i++) deep = new Error(`${i}`, { cause: deep });
  strictEqual(describe(deep, 0).message.split("\n").length, 7);
  const trap = (): never => {
    throw proxy;
  };
  const proxy: object = new Proxy([], { getPrototypeOf: trap, ownKeys: trap, get: trap });
  const hostile = new Error("x");
  Object.defineProperty(hostile, "errors", { value: proxy });
  Object.defineProperty(hostile, "cause", { get: trap });
  strictEqual(describe(hostile, 0).message, "x");
});

Deno.test("a loader's message loses the loader's own parts", () => {
  const error = new TypeError(
    `SyntaxError: Expression expected at ${AT}:2:4\n\n  const x = ;\n            ~`,
  );
  deepStrictEqual(describeLoad(error, 20), {
    name: "SyntaxError",
    message: "Expression expected",
    line: 2,
    column: 4,
    module: null,
  });
});
