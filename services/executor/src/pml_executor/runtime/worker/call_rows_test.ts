import { deepStrictEqual, strictEqual, throws } from "node:assert";
import { callRowsOf } from "./call_rows.ts";

// deno-lint-ignore no-explicit-any
type Any = (...args: any[]) => any;

function stage() {
  const { via, entered } = callRowsOf();
  return { via: via as (row: number, key: string, f: unknown) => Any, entered };
}

Deno.test("a function learns by which call it was entered, once", () => {
  const { via, entered } = stage();
  const rows: number[] = [];
  const f = () => void rows.push(entered("f", 7), entered("f", 7));
  via(3, "f", f)();
  via(4, "f", f)();
  f();
  deepStrictEqual(rows, [3, 7, 4, 7, 7, 7]);
});

Deno.test("a row is for its own function only", () => {
  const { via, entered } = stage();
  const rows: unknown[] = [];
  const g = () => void rows.push(["g", entered("g", 9)]);
  const f = () => {
    g(); // before its own question: still not by f's way
    rows.push(["f", entered("f", 7)]);
    g();
    via(5, "g", g)();
  };
  via(3, "f", f)();
  deepStrictEqual(rows, [["g", 9], ["f", 3], ["g", 9], ["g", 5]]);
});

Deno.test("a default value that calls does not take the row", () => {
  const { via, entered } = stage();
  const rows: unknown[] = [];
  const g = (x: number) => rows.push(["g", entered("g", 9), x]);
  const f = (x = via(5, "g", g)(1)) => rows.push(["f", entered("f", 7), x]);
  const again: Any = (depth: number, x = depth && via(depth, "again", again)(depth - 1)) =>
    rows.push(["again", entered("again", 7), depth, x]);
  via(3, "f", f)();
  via(2, "again", again)(1);
  deepStrictEqual(rows, [["g", 5, 1], ["f", 3, 1], ["again", 1, 0, 0], ["again", 2, 1, 3]]);
});

Deno.test("a row that is not taken ends with its call", () => {
  const { via, entered } = stage();
  throws(() =>
    via(3, "f", () => {
      throw new Error("before it was entered");
    })()
  );
  const lazy = via(4, "f", function* () {
    yield entered("f", 7);
  })() as Generator<number>;
  strictEqual(entered("f", 7), 7);
  strictEqual(lazy.next().value, 7);
});

Deno.test("strands do not take each other's rows", async () => {
  const { via, entered } = stage();
  const f = async (wait: number) => {
    const row = entered("f", 7);
    for (let i = 0; i < wait; i++) await null;
    return [row, await via(row + 10, "g", g)()];
  };
  const g = async () => {
    const row = entered("g", 9);
    await null;
    return row;
  };
  const rows = await Promise.all([via(1, "f", f)(3), via(2, "f", f)(1), f(2)]);
  deepStrictEqual(rows, [[1, 11], [2, 12], [7, 17]]);
});

Deno.test("this, arguments, results and errors pass through", () => {
  const { via } = stage();
  const object = {
    n: 2,
    times(this: { n: number }, ...args: number[]) {
      return [this, args.length, ...args.map((arg) => arg * this.n)];
    },
  };
  const wrapped = { n: 3, times: via(1, "times", object.times) };
  deepStrictEqual(wrapped.times(1, 2), [wrapped, 2, 3, 6]);
  deepStrictEqual([1, 2].map(via(1, "f", (...args: unknown[]) => args.length)), [3, 3]);
  strictEqual(
    via(1, "f", function (this: unknown) {
      return this;
    })(),
    undefined,
  );
  function thrower() {
    throw new RangeError("far");
  }
  throws(() => via(1, "f", thrower)(), (error: Error) => /^\s+at thrower/m.test(error.stack!));
});

Deno.test("a value that is no function passes through and fails as the author's would", () => {
  const { via } = stage();
  strictEqual(via(1, "f", undefined), undefined);
  throws(() => via(1, "f", 7)(), TypeError);
});
