import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { MAX_OUTCOME, reportsOf } from "./reports.ts";
import { Tally } from "./tally.ts";

function stage() {
  const said: [string, string | null][] = [];
  const tally = new Tally((node, outcome) => void said.push([node, outcome]));
  return { said, ...reportsOf(tally) };
}

Deno.test("a decision reports its truth and returns its value", () => {
  const { said, decide } = stage();
  const object = {};
  deepStrictEqual([decide("d1", 0), decide("d1", "x"), decide("d2", null)], [0, "x", null]);
  strictEqual(decide("d3", object), object);
  deepStrictEqual(said, [["d1", "false"], ["d1", "true"], ["d2", "false"], ["d3", "true"]]);
});

Deno.test("what is absent is null or undefined, and nothing else", () => {
  const { said, absent } = stage();
  deepStrictEqual([null, undefined, 0, "", false, NaN].map((value) => absent("d1", value)), [
    null,
    undefined,
    0,
    "",
    false,
    NaN,
  ]);
  deepStrictEqual(said.map(([, outcome]) => outcome), [
    "true",
    "true",
    "false",
    "false",
    "false",
    "false",
  ]);
});

Deno.test("a logical assignment returns its value", () => {
  const { said, decide, absent, last } = stage();
  let a: number | undefined = 1;
  let b: number | undefined;
  strictEqual(last(decide("d1", a), a &&= 2), 2);
  strictEqual(last(absent("d2", b), b ??= 3), 3);
  deepStrictEqual([a, b], [2, 3]);
  deepStrictEqual(said, [["d1", "true"], ["d2", "true"]]);
});

Deno.test("a try and a round are reported as they come", () => {
  const { said, took, round } = stage();
  round("l1");
  took("d1", "ok");
  round("l1");
  took("d1", "error");
  deepStrictEqual(said, [["l1", null], ["d1", "ok"], ["l1", null], ["d1", "error"]]);
});

/** The instrumented form of a `switch` whose first case falls through. */
function choose({ subject, chosen }: ReturnType<typeof stage>, value: unknown): string {
  let passed = "";
  switch (subject("d1", value)) {
    case "a":
      chosen("d1", "case:a");
      passed += "a";
      /* falls through */
    case "b":
      chosen("d1", "case:b");
      passed += "b";
      break;
    default:
      chosen("d1", "default");
      passed += "*";
  }
  return passed;
}

Deno.test("falling through is no separate choice", () => {
  const it = stage();
  deepStrictEqual(["a", "b", "c", "a"].map((value) => choose(it, value)), ["ab", "b", "*", "ab"]);
  deepStrictEqual(it.said.map(([, outcome]) => outcome), [
    "case:a",
    "case:b",
    "default",
    "case:a",
  ]);
});

Deno.test("a switch inside another has a choice of its own", () => {
  const { said, subject, chosen } = stage();
  for (const inner of [1, 2]) {
    switch (subject("d1", true)) {
      case true:
        chosen("d1", "case:true");
        switch (subject("d2", inner)) {
          case 1:
            chosen("d2", "case:1");
        }
        /* falls through */
      default:
        chosen("d1", "default");
    }
  }
  deepStrictEqual(said, [["d1", "case:true"], ["d2", "case:1"], ["d1", "case:true"]]);
});

Deno.test("a function that re-enters its own switch makes a choice each time", () => {
  const it = stage();
  const down = (n: number): number => {
    switch (it.subject("d1", n)) {
      case 0:
        it.chosen("d1", "case:0");
        return 0;
      default:
        it.chosen("d1", "default");
        return 1 + down(n - 1);
    }
  };
  strictEqual(down(2), 2);
  const search = (n: number): number => {
    switch (it.subject("d2", n)) {
      case n > 0 ? search(n - 1) : 0:
        it.chosen("d2", "case:same");
        return n;
      default:
        it.chosen("d2", "default");
        return n;
    }
  };
  search(2);
  deepStrictEqual(it.said.map(([node, outcome]) => `${node} ${outcome}`), [
    "d1 default",
    "d1 default",
    "d1 case:0",
    "d2 case:same",
    "d2 default",
    "d2 default",
  ]);
});

Deno.test("strands that wait inside one switch each make their choice", async () => {
  const { said, subject, chosen } = stage();
  await Promise.all([1, 2, 3].map(async (n) => {
    switch (subject("d1", n)) {
      case await Promise.resolve(2):
        chosen("d1", "case:two");
        break;
      default:
        chosen("d1", "default");
    }
  }));
  deepStrictEqual(said.map(([, outcome]) => outcome), ["default", "case:two", "default"]);
});

Deno.test("an endless label is cut", () => {
  const { said, took } = stage();
  took("d1", "x".repeat(MAX_OUTCOME + 1));
  strictEqual(said[0]![1]!.length, MAX_OUTCOME);
});

Deno.test("no report can be replaced", () => {
  const { said: _, ...reports } = stage();
  strictEqual(Object.keys(reports).length, 7);
  ok(Object.values(reports).every(Object.isFrozen));
});
