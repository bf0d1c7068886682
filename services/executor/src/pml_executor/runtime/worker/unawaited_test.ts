import { deepStrictEqual, rejects, strictEqual } from "node:assert";
import { MAX_NAMED, Promised } from "./unawaited.ts";

const AT = { line: 2, column: 1, chain: "" };

Deno.test("a dropped promise is open until it settles", async () => {
  const promised = new Promised();
  const { promise, resolve } = Promise.withResolvers<number>();
  promised.drop(promise, AT);
  strictEqual(promised.any, true);
  deepStrictEqual(promised.named(), [AT]);
  resolve(1);
  await promise;
  strictEqual(promised.any, false);
  deepStrictEqual(promised.named(), []);
});

Deno.test("what is no promise is never open", () => {
  const promised = new Promised();
  for (const value of [undefined, null, 1, {}, { then() {} }, () => {}]) promised.drop(value, AT);
  strictEqual(promised.any, false);
});

Deno.test("a dropped rejection stays unhandled", async () => {
  const promised = new Promised();
  const unhandled = new Promise((_resolve, reject) => {
    const listener = (event: PromiseRejectionEvent) => {
      event.preventDefault();
      removeEventListener("unhandledrejection", listener);
      reject(event.reason);
    };
    addEventListener("unhandledrejection", listener);
  });
  promised.drop(Promise.reject(new Error("mine")), AT);
  await rejects(unhandled, /mine/);
  strictEqual(promised.any, false);
});

Deno.test("only the first ones are named", () => {
  const promised = new Promised();
  for (let line = 1; line <= MAX_NAMED + 5; line++) {
    promised.drop(new Promise(() => {}), { ...AT, line });
  }
  deepStrictEqual(
    promised.named().map(({ line }) => line),
    Array.from({ length: MAX_NAMED }, (_, i) => i + 1),
  );
});
