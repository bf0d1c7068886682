import { deepStrictEqual, ok, rejects, strictEqual, throws } from "node:assert";
import { apiOf, type Bridge, Calls } from "./tools.ts";

type Named = Record<string, Record<string, (args?: unknown) => Promise<unknown>>>;

function stage() {
  const said: unknown[][] = [];
  const bridge: Bridge = {
    call: (id, _within, node, tool, args) => void said.push([id, node, tool, JSON.parse(args)]),
  };
  const calls = new Calls(bridge);
  const api = apiOf((node, tool, given) => calls.make(node, tool, given));
  const mcp = api.mcp as Named & { call: (tool: unknown, args?: unknown) => Promise<unknown> };
  // deno-lint-ignore no-explicit-any
  const at = api.at as (node: string, callee: unknown) => any;
  return { said, calls, mcp, at, capabilities: api.capabilities as Named[string] };
}

Deno.test("a call names its node, its tool and its arguments, however it is reached", () => {
  const { said, mcp, at, capabilities } = stage();
  const alias = mcp.fs!.read!;
  void mcp.fs!.read!({ path: "/x" });
  void at("n1", mcp.fs!.read)({ path: "/x" });
  void at("n2", mcp.call)("fs:read", { path: "/y" });
  void at("n3", alias)();
  void mcp["odd server"]!["odd.tool"]!({});
  void at("n4", capabilities.tidy)({ deep: true });
  deepStrictEqual(said, [
    [0, null, "fs:read", { path: "/x" }],
    [1, "n1", "fs:read", { path: "/x" }],
    [2, "n2", "fs:read", { path: "/y" }],
    [3, "n3", "fs:read", {}],
    [4, null, "odd server:odd.tool", {}],
    [5, "n4", "cap:tidy", { deep: true }],
  ]);
});

Deno.test("a value that is no tool passes through unchanged", () => {
  const { at } = stage();
  const own = () => 1;
  strictEqual(at("n1", own), own);
  strictEqual(at("n1", undefined), undefined);
});

Deno.test("answers reach their calls in any order, once", async () => {
  const { calls, mcp } = stage();
  const [a, b] = [mcp.api!.a!(), mcp.api!.b!()];
  strictEqual(calls.settled, false);
  calls.settle({ id: 1, ok: true, value: "b" });
  calls.settle({ id: 0, ok: true, value: "a" });
  calls.settle({ id: 0, ok: true, value: "again" });
  calls.settle({ id: 7, ok: true });
  strictEqual(calls.settled, true);
  deepStrictEqual(await Promise.all([a, b]), ["a", "b"]);
});

Deno.test("a tool's error is an error of its call", async () => {
  const { calls, mcp } = stage();
  const call = mcp.fs!.read!();
  calls.settle({ id: 0, ok: false, message: "no file" });
  const error = await call.then(() => null, (reason) => reason);
  ok(error instanceof Error);
  deepStrictEqual([error.name, error.message, calls.origin(error)], ["ToolError", "no file", 0]);
  deepStrictEqual([calls.origin(new Error("no file")), calls.origin("x"), calls.origin(null)], [
    null,
    null,
    null,
  ]);
});

Deno.test("wrong arguments are refused in the program", async () => {
  const { said, mcp } = stage();
  await rejects(mcp.fs!.read!([1]), /fs:read takes one object with its arguments, not \[1\]/);
  await rejects(mcp.fs!.read!("x".repeat(1000)), (e: Error) => e.message.length < 200);
  await rejects(mcp.call(7), /called by its name/);
  deepStrictEqual(said, []);
});

Deno.test("the interface cannot be changed", () => {
  const { mcp, at } = stage();
  throws(() => void ((mcp as unknown as { fs: number }).fs = 1), /cannot be changed/);
  throws(() => delete mcp.fs, /cannot be changed/);
  throws(() => Object.defineProperty(mcp, "fs", { value: 1 }), /cannot be changed/);
  throws(() => Object.setPrototypeOf(mcp, {}), /cannot be changed/);
  ok(Object.isFrozen(mcp.fs!.read) && Object.isFrozen(at));
  strictEqual(mcp.then, undefined);
  strictEqual("fs" in mcp, true);
});

Deno.test("only a call that the analysis did not find has its position", () => {
  const places: unknown[] = [];
  const bridge: Bridge = {
    call: (_id, _within, _node, _tool, _args, place) => void places.push(place),
  };
  const place = { line: 4, column: 2, module: null };
  const calls = new Calls(bridge, () => place);
  void calls.make(null, "fs:read", {});
  void calls.make("n1", "fs:read", {});
  deepStrictEqual(places, [place, null]);
});

Deno.test("handling a tool runs nothing of the program and makes no call", async () => {
  const { said, mcp, capabilities } = stage();
  for (const tool of [mcp.fs!.read!, mcp.call, capabilities.tidy!] as unknown[]) {
    strictEqual(`${tool}`, "[tool]");
    strictEqual(tool + "", "[tool]");
    ok(Number.isNaN(+(tool as number)));
    strictEqual((tool as string) in { "[tool]": 1 }, true);
    strictEqual({ "[tool]": 1 }[tool as string], 1);
    // deno-lint-ignore eqeqeq
    strictEqual(tool == "[tool]", true);
    strictEqual(JSON.stringify([tool]), "[null]");
    strictEqual(await tool, tool);
    throws(() => ({}) instanceof (tool as new () => unknown), TypeError);
    throws(() => Object.defineProperty(tool, Symbol.toPrimitive, { value: () => "x" }), TypeError);
    throws(() => Object.setPrototypeOf(tool, { toString: () => "x" }), TypeError);
    const inherited = Object.getPrototypeOf(tool);
    strictEqual(Object.getPrototypeOf(inherited), null);
    ok(Object.isFrozen(inherited));
    for (const name of Reflect.ownKeys(inherited)) ok(Object.isFrozen(inherited[name]));
  }
  deepStrictEqual(said, []);
});

Deno.test("a tool is called by call, apply and bind, without a node", () => {
  const { said, mcp } = stage();
  void mcp.fs!.read!.call(null, { path: "/a" });
  void mcp.fs!.read!.apply(null, [{ path: "/b" }]);
  void mcp.fs!.read!.bind(null, { path: "/c" })();
  void mcp.call.bind(null, "fs:read")({ path: "/d" });
  deepStrictEqual(said.map(([, node, , args]) => [node, (args as { path: string }).path]), [
    [null, "/a"],
    [null, "/b"],
    [null, "/c"],
    [null, "/d"],
  ]);
});

Deno.test("arguments are read once, and what was read is what is sent", () => {
  const { said, at, mcp } = stage();
  const reads: string[] = [];
  const changing = (name: string) => () => `${name} ${reads.push(name)}`;
  const proxy = new Proxy({ p: "" }, {
    ownKeys: () => (reads.push("keys"), ["p"]),
    get: (_target, name) => typeof name === "string" ? changing(name)() : undefined,
  });
  const given = { proxy, list: [] };
  Object.defineProperty(given, "path", { get: changing("path"), enumerable: true });
  Object.defineProperty(given.list, 0, { get: changing("item"), enumerable: true });
  void at("n1", mcp.fs!.read)(given);
  deepStrictEqual(said, [
    [0, "n1", "fs:read", { proxy: { p: "p 3" }, list: ["item 4"], path: "path 1" }],
  ]);
  deepStrictEqual(reads, ["path", "keys", "p", "item"]);
});
