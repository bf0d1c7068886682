import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { MAX_OF_NODE, MAX_OF_RUN, type Send, Tally } from "./tally.ts";

type Sent = [string, string | null, number];

function stage() {
  const sent: Sent[] = [];
  const send: Send = (node, outcome, counted) => void sent.push([node, outcome, counted]);
  return { sent, tally: new Tally(send) };
}

function times(count: number, act: (i: number) => void): void {
  for (let i = 0; i < count; i++) act(i);
}

/** Sums up the reports. */
function totals(sent: Sent[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [node, outcome, counted] of sent) {
    const key = `${node} ${outcome}`;
    sums[key] = (sums[key] ?? 0) + (counted || 1);
  }
  return sums;
}

Deno.test("the first reports go out one by one, in their order", () => {
  const { sent, tally } = stage();
  tally.add("l1", null);
  tally.add("d1", "true");
  tally.add("d1", "false");
  deepStrictEqual(sent, [["l1", null, 0], ["d1", "true", 0], ["d1", "false", 0]]);
  tally.finish();
  strictEqual(sent.length, 3);
});

Deno.test("what a node reports after them goes out at each doubling and at the end", () => {
  const { sent, tally } = stage();
  times(MAX_OF_NODE, () => tally.add("d1", "true"));
  times(100, (i) => tally.add("d1", i < 6 ? "false" : "true"));
  deepStrictEqual(sent.slice(MAX_OF_NODE), [
    ["d1", "false", 1],
    ["d1", "false", 1],
    ["d1", "false", 2],
    ["d1", "true", 1],
    ["d1", "true", 1],
    ["d1", "true", 2],
    ["d1", "true", 4],
    ["d1", "true", 8],
    ["d1", "true", 16],
    ["d1", "true", 32],
  ]);
  tally.finish();
  deepStrictEqual(sent.slice(-2), [["d1", "false", 2], ["d1", "true", 30]]);
  const before = sent.length;
  tally.finish();
  strictEqual(sent.length, before);
});

Deno.test("another node still reports one by one", () => {
  const { sent, tally } = stage();
  times(2 * MAX_OF_NODE, () => tally.add("l1", null));
  tally.add("d2", "ok");
  deepStrictEqual(sent.at(-1), ["d2", "ok", 0]);
});

Deno.test("a million reports of many nodes are few messages and lose nothing", () => {
  const { sent, tally } = stage();
  times(1_000_000, (i) => tally.add(`d${i % 20}`, i % 3 === 0 ? "true" : "false"));
  tally.finish();
  strictEqual(sent.filter(([, , counted]) => counted === 0).length, MAX_OF_RUN);
  ok(sent.length < MAX_OF_RUN + 20 * 2 * 20);
  strictEqual(Object.values(totals(sent)).reduce((a, b) => a + b), 1_000_000);
});

Deno.test("the same reports leave the same messages", () => {
  const [one, other] = [stage(), stage()];
  for (const { tally } of [one, other]) {
    times(20_000, (i) => tally.add(`l${i % 7}`, i % 7 < 3 ? null : `case:${i % 11}`));
    tally.finish();
  }
  deepStrictEqual(one.sent, other.sent);
});

Deno.test("a report tells the call of a capability that it comes from, a count the last one", () => {
  const within: [number, number | null][] = [];
  const tally = new Tally((_node, _outcome, counted, call) => void within.push([counted, call]));
  tally.add("n1/d1", "true", 4);
  tally.add("d1", "true");
  times(MAX_OF_NODE, (i) => tally.add("n1/d1", "true", i));
  deepStrictEqual([within[0], within[1], within.at(-1)], [[0, 4], [0, null], [1, MAX_OF_NODE - 1]]);
});

Deno.test("a report without a node is dropped", () => {
  const { sent, tally } = stage();
  tally.add(undefined as unknown as string, "true");
  tally.finish();
  deepStrictEqual(sent, []);
});
