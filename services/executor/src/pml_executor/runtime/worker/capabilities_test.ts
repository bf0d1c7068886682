import { deepStrictEqual, rejects, strictEqual } from "node:assert";
import { type Caller, Capabilities, DEEPEST, PROGRAM } from "./capabilities.ts";
import { Outbox } from "./outbox.ts";
import { apiOf, Calls } from "./tools.ts";

// deno-lint-ignore no-explicit-any
type Any = any;
// deno-lint-ignore no-explicit-any
type Bound = { capabilities: any; mcp: any; at: any; args: any };
type Main = (bound: Bound) => Promise<unknown>;

/** Builds a program's interface with these capabilities. */
function stage(mains: Record<string, Main>) {
  const sent: Any[] = [];
  const outbox = new Outbox((text) =>
    void sent.push(...text.split("\n").map((line) => JSON.parse(line)))
  );
  const calls = new Calls(outbox);
  const bind = (caller: Caller, args: unknown): unknown[] => [
    { ...apiOf(capabilities.madeBy(caller)), args },
  ];
  const capabilities: Capabilities = new Capabilities(outbox, calls, bind, 0);
  Object.entries(mains).forEach(([name, main], number) =>
    capabilities.know(name, { number, name, main: main as never })
  );
  const [program] = bind(PROGRAM, {}) as [Bound];
  const answer = (id: number, value: unknown) => calls.settle({ id, ok: true, value });
  return { sent, calls: program, answer, capabilities };
}

/** Formats each message as `kind within → id node`. */
const told = (sent: Any[]) =>
  sent.map(({ kind, within, id, node }) => `${kind} ${within ?? "-"} ${id} ${node ?? ""}`.trim());

Deno.test("a capability is called directly, with copies, and gives its last return", async () => {
  const given = { list: [1] };
  const { sent, calls } = stage({
    grow: async ({ args }) => {
      args.list.push(2);
      await null;
      return { args, when: undefined };
    },
  });
  const result = await calls.at("n1", calls.capabilities.grow)(given);
  deepStrictEqual([given, result], [{ list: [1] }, { args: { list: [1, 2] } }]);
  deepStrictEqual(sent, [
    { kind: "entered", id: 0, within: null, node: "n1", capability: 0, args: { list: [1] } },
    { kind: "left", id: 0, value: { args: { list: [1, 2] } } },
  ]);
});

Deno.test("every name of a capability reaches it, and no other name does", async () => {
  const { sent, calls } = stage({
    "fs:look": async () => await 1,
    "__proto__": async () => await 2,
  });
  deepStrictEqual(
    await Promise.all([
      calls.mcp.call("cap:fs:look"),
      calls.mcp.cap["fs:look"](),
      calls.capabilities["fs:look"]({}),
    ]),
    [1, 1, 1],
  );
  deepStrictEqual(sent.map(({ node }) => node).slice(0, 1), ["dyn:cap:fs:look"]);
  for (const name of ["__proto__", "constructor", "hasOwnProperty", "fs_look"]) {
    sent.length = 0;
    void calls.capabilities[name]({});
    deepStrictEqual(sent.map(({ kind, tool }) => [kind, tool]), [["call", `cap:${name}`]]);
  }
});

Deno.test("nested calls name their callers", async () => {
  const { sent, calls, answer } = stage({
    a: async ({ at, capabilities, mcp }) => {
      await at("n1", mcp.fs.stat)({});
      return await at("n2", capabilities.b)({});
    },
    b: async ({ capabilities }) => await capabilities.c({}),
    c: async ({ mcp }) => await mcp.fs.read({}),
  });
  const end = calls.at("n7", calls.capabilities.a)();
  answer(0, null);
  await new Promise((resolve) => setTimeout(resolve));
  answer(1, "deep");
  strictEqual(await end, "deep");
  deepStrictEqual(told(sent), [
    "entered - 0 n7",
    "call 0 0 n7/n1",
    "entered 0 1 n7/n2",
    "entered 1 2 n7/n2/dyn:cap:c",
    "call 2 1 n7/n2/dyn:cap:c/dyn:fs:read",
    "left - 2",
    "left - 1",
    "left - 0",
  ]);
});

Deno.test("concurrent calls keep their own depth and parents", async () => {
  const { sent, calls, answer } = stage({
    a: async ({ at, mcp, capabilities, args }) => {
      await at("n1", mcp.api.wait)({});
      return await at("n2", capabilities.b)(args);
    },
    b: async ({ at, mcp, args }) => [args.i, await at("n1", mcp.api.get)({})],
  });
  const all = Promise.all([0, 1, 2].map((i) => calls.at("n1", calls.capabilities.a)({ i })));
  for (const id of [2, 0, 1]) {
    answer(id, null);
    await new Promise((resolve) => setTimeout(resolve));
  }
  for (const id of [3, 4, 5]) answer(id, id);
  deepStrictEqual(await all, [[0, 4], [1, 5], [2, 3]]);
  const entered = sent.filter(({ kind }) => kind === "entered");
  deepStrictEqual(entered.map(({ within, args }) => [within, args.i]), [
    [null, 0],
    [null, 1],
    [null, 2],
    [2, 2],
    [0, 0],
    [1, 1],
  ]);
});

Deno.test(`nesting deeper than ${DEEPEST} is refused`, async () => {
  const next = (name: string): Main => async ({ capabilities }) => await capabilities[name]({});
  const chain = stage({ a: next("b"), b: next("c"), c: next("d"), d: async () => await 1 });
  strictEqual(await chain.calls.capabilities.b({}), 1);
  await rejects(
    chain.calls.capabilities.a({}),
    /^CapabilityError: a.*: b.*: c.*: TypeError: d cannot be called here: .* at most 3 deep.* a → b → c$/,
  );
  const cycles = stage({ a: next("a"), b: next("c"), c: next("b") });
  await rejects(cycles.calls.capabilities.a({}), /a → a → a$/);
  await rejects(cycles.calls.capabilities.b({}), /b → c → b$/);
  strictEqual(cycles.sent.filter(({ kind }) => kind === "entered").length, 2 * DEEPEST);
});

Deno.test("an error of a capability has its name and can be caught", async () => {
  const { sent, calls, capabilities } = stage({
    broken: () => Promise.reject(new RangeError("too much")),
    deep: async () => {
      let value: unknown = [];
      for (let i = 0; i < 200; i++) value = await [value];
      return value;
    },
  });
  const error = await calls.capabilities.broken({}).catch((e: unknown) => e);
  deepStrictEqual(
    [error.name, error.message],
    ["CapabilityError", "broken: RangeError: too much"],
  );
  deepStrictEqual(capabilities.origin(error), { call: null, capability: 0 });
  deepStrictEqual(capabilities.origin(null), { call: null, capability: null });
  await rejects(calls.capabilities.deep({}), /deep: RangeError: .* nested deeper than 100/);
  deepStrictEqual(sent.map(({ kind, id }) => [kind, id]), [
    ["entered", 0],
    ["failed", 0],
    ["entered", 1],
    ["failed", 1],
  ]);
});

Deno.test("wrong arguments are refused where the capability is called", async () => {
  const { sent, calls } = stage({ a: async () => await 1 });
  await rejects(calls.capabilities.a(7), /capability a takes one object with its arguments, not 7/);
  await rejects(calls.mcp.call(Symbol("a")), /called by its name/);
  deepStrictEqual(sent, []);
});
