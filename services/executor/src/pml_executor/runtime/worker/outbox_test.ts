import { deepStrictEqual, strictEqual } from "node:assert";
import { Outbox } from "./outbox.ts";
import { MAX_OF_NODE } from "./tally.ts";

// deno-lint-ignore no-explicit-any
type Message = any;

function stage() {
  const sent: Message[] = [];
  const texts: string[] = [];
  const outbox = new Outbox((text) => {
    texts.push(text);
    sent.push(...text.split("\n").map((line) => JSON.parse(line)));
  });
  return { sent, texts, outbox };
}

Deno.test("notes of one task leave together, before what follows them", async () => {
  const { sent, outbox } = stage();
  outbox.log("info", "hi");
  outbox.tally.add("l1", null);
  outbox.tally.add("d1", 'case:"\u2028');
  strictEqual(sent.length, 0);
  outbox.call(0, null, "n1", "fs:read", "{}");
  outbox.tally.add("d1", "default");
  await null;
  deepStrictEqual(sent, [
    {
      kind: "noted",
      notes: [
        { type: "log", within: null, level: "info", message: "hi" },
        { type: "loop", within: null, node: "l1", counted: 0 },
        { type: "decision", within: null, node: "d1", outcome: 'case:"\u2028', counted: 0 },
      ],
    },
    { kind: "call", id: 0, within: null, node: "n1", tool: "fs:read", args: {} },
    {
      kind: "noted",
      notes: [{ type: "decision", within: null, node: "d1", outcome: "default", counted: 0 }],
    },
  ]);
});

Deno.test("a pause is reported after all earlier messages", () => {
  const { sent, outbox } = stage();
  outbox.call(0, null, "n1", "fs:read", "{}");
  outbox.log("info", "hi");
  outbox.paused();
  deepStrictEqual(sent.map((message) => message.kind), ["call", "noted", "paused"]);
});

Deno.test("a long message is sent separately, after its notes", () => {
  const { texts, outbox } = stage();
  outbox.log("info", "hi");
  outbox.returned("short\n");
  strictEqual(texts.length, 1);
  outbox.log("info", "hi");
  outbox.returned("x".repeat(20_000));
  strictEqual(texts.length, 3);
});

Deno.test("a call that the analysis did not find is sent with its position", () => {
  const { sent, outbox } = stage();
  outbox.call(0, null, null, "fs:read", "{}", { line: 2, column: 5, module: null });
  deepStrictEqual(sent, [{
    kind: "call",
    id: 0,
    within: null,
    node: null,
    tool: "fs:read",
    line: 2,
    column: 5,
    module: null,
    args: {},
  }]);
});

Deno.test("counts are sent before the end of the program", () => {
  for (const end of ["returned", "threw"] as const) {
    const { sent, outbox } = stage();
    for (let i = 0; i < MAX_OF_NODE + 7; i++) outbox.tally.add("l1", null);
    const failure = { name: "Error", message: "no", line: null, column: null, module: null };
    if (end === "returned") outbox.returned([1]);
    else outbox.threw(failure, "run", { call: null, capability: null });
    const notes = sent.flatMap((message) => message.notes ?? []);
    deepStrictEqual(notes.slice(MAX_OF_NODE).map((note) => note.counted), [1, 1, 2, 3]);
    strictEqual(sent.at(-1).kind, end);
  }
});

Deno.test("an endless loop still reports its rounds", () => {
  const { sent, outbox } = stage();
  for (let i = 0; i < MAX_OF_NODE + 4096; i++) outbox.tally.add("l1", null);
  const notes = sent.flatMap((message) => message.notes);
  strictEqual(notes.reduce((sum, note) => sum + (note.counted || 1), 0), MAX_OF_NODE + 4096);
});

Deno.test("the part that gave the program its value is told with it", () => {
  const { sent, outbox } = stage();
  const part = { node: "n1", path: ["a", 0, null], text: "r.a[0]", line: 1, column: 8 };
  outbox.returned(undefined, [], [], part);
  outbox.returned(1);
  deepStrictEqual(sent, [{ kind: "returned", value: null, part }, { kind: "returned", value: 1 }]);
});
