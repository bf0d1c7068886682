/**
 * The rules of realms (docs/sandbox.md), 1 to 7: what each keeps out, and that without it, as the code is
 * changed here, that comes in.
 */
import { deepStrictEqual, strictEqual } from "node:assert";
import { type Change, closed, later, order, rule, until, valueOf, withRealms } from "./changed.ts";
import { CALL_SITES, MODULES, WALK } from "./probes.ts";

closed(
  "1: a realm makes no code of texts",
  `try { return (0, eval)("1") } catch (error) { return "closed" }`,
  { outer: [["strings: false", "strings: true"]] },
);

rule("1: a realm's microtasks are its own, and run when it is driven", async () => {
  const code = "await 0; await 0; return 'closed';";
  strictEqual(await valueOf(code), "closed");
  await withRealms({ outer: [['microtaskMode: "afterEvaluate",', ""]] }, async (realms, said) => {
    realms.receive(order(code));
    await later(5);
    deepStrictEqual(said, []);
  });
});

closed(
  "1: the global object is the realm's own, not a view of one of ours",
  `return globalThis.constructor.constructor === Function ? "closed" : "a view";`,
  { outer: [["vm.constants.DONT_CONTEXTIFY", "{}"]] },
);

closed("2: no object of ours is within reach", WALK, {
  outer: [[
    "this.#io = runtime.runInContext(this.#context);",
    "this.#io = runtime.runInContext(this.#context); this.#context.leaked = performance;",
  ]],
});

rule("2: the inner side is called on no object of ours", async () => {
  const inner: Change[] = [["switch (op) {", "if (this !== undefined) throw 1; switch (op) {"]];
  const code = "await 0; return 'closed';";
  strictEqual(await valueOf(code, { inner }), "closed");
  const method: Change = [" io(op, given);", " this.#io(op, given);"];
  strictEqual((await valueOf(code, { inner, outer: [method] }) as string[])[0], "breach");
  deepStrictEqual(
    await valueOf("}}})(); throw 1; (function () { return async () => {{", { inner }),
    await valueOf("}}})(); throw 1; (function () { return async () => {{"),
  );
});

rule("2: an inner side that throws as a program is handed in is a breach", async () => {
  const inner: Change[] = [["push(mains, given);", "throw 1;"]];
  strictEqual((await valueOf("return 1;", { inner }) as string[])[0], "breach");
});

const HOSTILE_IO = 'case "take":\n      return globalThis.hostile ?? pending.take();';
const TAKE = 'case "take":\n      return pending.take();';

/** What a program counts on its global object, which the outer side keeps for the test. */
interface Counted {
  held?: { count: number };
}
const RUN_INNER = "this.#io = runtime.runInContext(this.#context);";
const HOLD: Change = [RUN_INNER, `${RUN_INNER} globalThis.held = this.#context;`];

/** Returns what was said of a program, and its `count` once that was said. */
async function counted(code: string, inner: Change[], outer: Change[]): Promise<unknown[]> {
  const holder = globalThis as Counted;
  try {
    const said = await valueOf(`globalThis.count = 0; ${code}`, { inner, outer: [HOLD, ...outer] });
    return [said, holder.held?.count];
  } finally {
    delete holder.held;
  }
}
const BREACH = ["breach", "the program changed its realm's interface"];

rule("3: what is no text is a breach, and is not looked at", async () => {
  const code = `const look = (_, name) => { count++; return 0; };
    globalThis.hostile = new Proxy({}, { get: look, has: look, getPrototypeOf: () => look() });`;
  const inner: Change[] = [[TAKE, HOSTILE_IO]];
  deepStrictEqual(await counted(code, inner, []), [BREACH, 0]);
  const trusting: Change = ['if (typeof text !== "string") this.#breach();\n    else if', "if"];
  deepStrictEqual(await counted(code, inner, [trusting]), [undefined, 1]);
});

rule("4: what the inner side throws is not looked at", async () => {
  const code = `globalThis.hostile = { toString() { count++; return ""; } };`;
  const thrower =
    'case "take":\n      if (globalThis.hostile) throw globalThis.hostile;\n      return pending.take();';
  const inner: Change[] = [[TAKE, thrower]];
  deepStrictEqual(await counted(code, inner, []), [BREACH, 0]);
  const looking: Change = [
    "} catch {\n      this.#breach();",
    "} catch (error) {\n      String(error); this.#breach();",
  ];
  deepStrictEqual(await counted(code, inner, [looking]), [BREACH, 1]);
});

closed("5: no call site is within reach by what makes texts of stacks", CALL_SITES, {
  inner: [
    ['defineProperty(RealError, "prepareStackTrace", { value: undefined });', ""],
    ["if (object === RealError) freezeError(object);", "if (object === RealError) return;"],
  ],
});

closed("5: no call site is within reach by another Error", CALL_SITES, {
  inner: [[
    "values.push(define(name, found.value))",
    'values.push(define(name, found.value, name === "Error"))',
  ]],
});

closed(
  "6: globals that are not kept are deleted",
  `const names = ["WebAssembly", "Atomics", "SharedArrayBuffer", "WeakRef", "FinalizationRegistry",
    "Temporal"].filter((name) => globalThis[name] !== undefined);
   return names.length === 0 ? "closed" : names;`,
  { inner: [["!KEPT.includes(name)", "false"]] },
);

closed(
  "6: no date leads to Temporal",
  `return "toTemporalInstant" in Date.prototype ? "Temporal" : "closed";`,
  { inner: [['deleteProperty(Date.prototype, "toTemporalInstant");', ""]] },
);

rule("6: symbols with a name are the realm's, and those of another run are others", async () => {
  strictEqual(
    await valueOf("return Symbol.keyFor(Symbol.for('x')) === 'x' ? 'closed' : 'broken';"),
    "closed",
  );
  const isOurs = (inner: Change[]) =>
    withRealms({ inner }, async (realms, said) => {
      let ours = false;
      const look = ({ reason }: PromiseRejectionEvent) => ours = reason === Symbol.for("left");
      addEventListener("unhandledrejection", look);
      realms.receive(order("Promise.reject(Symbol.for('left')); await new Promise(() => {});"));
      await until(said);
      removeEventListener("unhandledrejection", look);
      return ours;
    });
  strictEqual(await isOurs([]), false);
  strictEqual(await isOurs([["ownSymbols();", ""]]), true);
});

closed(
  "6: dates are formatted by the run's clock",
  `const year = new Intl.DateTimeFormat("en", { year: "numeric" });
   return year.format() === "1970" && year.formatToParts()[0].value === "1970" ? "closed" : "now";`,
  { inner: [["formatBy(clock);", ""]] },
);

closed(
  "6: nothing that our side walks can be changed",
  `try { Object.defineProperty(Array.prototype, 0, { set() {}, get: () => undefined }); } catch {}
   return "closed";`,
  { inner: [["  freezeIntrinsics(values);", ""]] },
);

closed(
  "6: an error in a microtask of the program's is the program's",
  `queueMicrotask(() => { throw new Error("mine"); });
   return queueMicrotask.toString().includes("native") ? "V8's" : "closed";`,
  { inner: [[", { queueMicrotask });", ");"]] },
);

closed(
  "7: no function can read its caller",
  `}}})(); const sloppy = function () { return sloppy.caller; };
   const caller = function () { return sloppy(); };
   (function () { return async () => {{
   try { return caller() === null ? "closed" : "read"; } catch { return "closed"; }`,
  { outer: [['"use strict";(function', "(function"]] },
);

closed("7: no module is loaded", MODULES, {
  outer: [[
    "`${moduleHead(capability)}program`,",
    "`${moduleHead(capability)}program`, importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,",
  ]],
});

rule("7: only JavaScript runs, at the author's positions", async () => {
  strictEqual(
    await valueOf("const a: number = 1;\nreturn (a as unknown) === 1 ? 'closed' : 0;"),
    "closed",
  );
  const [kind] = await valueOf("enum A { B } return A.B;") as string[];
  strictEqual(kind, "unsuited");
  const thrown = await valueOf("const a: number = 1;\n  (null as any).x;") as Record<
    string,
    unknown
  >;
  deepStrictEqual([thrown.line, thrown.column], [2, 17]);
});
