/**
 * The rules of realms (docs/sandbox.md): what each keeps out, and that without it, as the code is
 * changed here, that comes in.
 */
import { deepStrictEqual, notStrictEqual, ok, strictEqual } from "node:assert";
import { buildInner, buildOuter, buildRealm } from "../build.ts";
import type { Post, Realms } from "./outer.ts";
import { CALL_SITES, MODULES, PROBES, WALK } from "./probes.ts";

type Change = [from: string, to: string];
type Said = Parameters<Post>[0][];

interface Sides {
  inner?: Change[];
  outer?: Change[];
}

function changed(text: string, changes: Change[] = []): string {
  for (const [from, to] of changes) {
    ok(text.includes(from), `the code has no ${from}`);
    text = text.replaceAll(from, () => to);
  }
  return text;
}

/** Runs `body` with realms of the changed code in this process; `rejections` pass theirs on. */
async function withRealms<T>(
  sides: Sides,
  body: (realms: Realms, said: Said) => Promise<T>,
): Promise<T> {
  const text = `${changed(buildOuter(), sides.outer)}\nexport { Realms };`;
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const { Realms: Changed } = await import(url);
  const said: Said = [];
  const realms: Realms = new Changed(changed(buildInner(), sides.inner), (data: Said[0]) => {
    said.push(data);
  });
  const heard = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    realms.rejected(event.reason);
  };
  addEventListener("unhandledrejection", heard);
  try {
    return await body(realms, said);
  } finally {
    await realms.end();
    removeEventListener("unhandledrejection", heard);
    URL.revokeObjectURL(url);
  }
}

const order = (code: string) =>
  JSON.stringify({
    kind: "run",
    code,
    capabilities: [],
    args: {},
    seed: "0".repeat(32),
    now: 1_000,
    past: 0,
  });

const later = (ms: number) => new Promise((then) => setTimeout(then, ms));

/** Waits until something was said, in bounded time. */
async function until(said: Said, count = 1): Promise<void> {
  for (let i = 0; i < 500 && said.length < count; i++) await later(1);
}

/** Runs one program and returns its value, or what else was said. */
function valueOf(code: string, sides: Sides = {}): Promise<unknown> {
  return withRealms(sides, async (realms, said) => {
    realms.receive(order(code));
    await until(said);
    const end = said.at(-1);
    const message = typeof end === "string" ? JSON.parse(end.split("\n").at(-1)!) : end;
    return message?.kind === "returned" ? message.value : message;
  });
}

function rule(name: string, body: () => Promise<void>): void {
  Deno.test({ name, fn: body, sanitizeOps: false, sanitizeResources: false });
}

/** States that a program returns "closed", and something else or nothing without a rule. */
function closed(name: string, code: string, without: Sides): void {
  rule(name, async () => {
    strictEqual(await valueOf(code), "closed");
    notStrictEqual(await valueOf(code, without), "closed");
  });
}

closed(
  "1: a realm makes no code of texts",
  `try { return (0, eval)("1") } catch (error) { return "closed" }`,
  { outer: [["strings: false", "strings: true"]] },
);

rule("1: a realm's microtasks are its own, and run when it is driven", async () => {
  const code = "await 0; await 0; return 'closed';";
  strictEqual(await valueOf(code), "closed");
  await withRealms({ outer: [['microtaskMode: "afterEvaluate"', ""]] }, async (realms, said) => {
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

const HOSTILE_IO = 'case "take":\n      return globalThis.hostile ?? pending.take();';
const TAKE = 'case "take":\n      return pending.take();';

rule("3: what is no text is a breach, and is not looked at", async () => {
  const code = `globalThis.looked = [];
    globalThis.hostile = new Proxy({}, { get(_, name) { looked.push(String(name)); return 0; } });`;
  deepStrictEqual(await valueOf(code, { inner: [[TAKE, HOSTILE_IO]] }), [
    "breach",
    "the program changed its realm's interface",
  ]);
  const trusting: Change = ['if (typeof text !== "string") this.#breach();\n    else if', "if"];
  notStrictEqual(
    (await valueOf(code, { inner: [[TAKE, HOSTILE_IO]], outer: [trusting] }) as string[])?.[0],
    "breach",
  );
});

rule("4: what the inner side throws is not looked at", async () => {
  const code = `globalThis.hostile = 1; globalThis.touched = 0;`;
  const thrower =
    'case "take":\n      if (globalThis.hostile) throw { toString() { globalThis.touched = 1; return ""; } };\n      return pending.take();';
  const telling = 'case "due":\n      if (globalThis.touched) throw 1;';
  const due = 'case "due":';
  const inner: Change[] = [[TAKE, thrower], [due, telling]];
  deepStrictEqual((await valueOf(code, { inner }) as string[])[0], "breach");
  const looking: Change = ["} catch {\n      this.#breach();", "} catch (error) { String(error);"];
  // Looked at, it runs the program's code on our side of the interface: no breach is reported.
  strictEqual(await valueOf(code, { inner, outer: [looking] }), undefined);
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
  { inner: [["  queueMicrotask,\n});", "});"]] },
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

closed("8: what was queued runs before anything is taken", "await 0; return 'closed';", {
  outer: [["DRAIN.runInContext(this.#context);", ""]],
});

closed(
  "8: real timers are ours",
  "await new Promise((then) => setTimeout(then, 2)); return 'closed';",
  { outer: [["this.#timer = setTimeout(", "void ("]] },
);

rule("9: nothing of a run that is over is heard", async () => {
  const heard = (outer: Change[]) =>
    withRealms({ outer }, async (realms, said) => {
      realms.receive(order("setInterval(() => console.log('late'), 1); return 0;"));
      await realms.end();
      const before = said.length;
      await later(20);
      return said.length - before;
    });
  strictEqual(await heard([]), 0);
  notStrictEqual(
    await heard([
      ["this.#over = true;\n    clearTimeout(this.#timer);", ""],
      ['this.#io = () => "";\n    this.#context = {};', ""],
    ]),
    0,
  );
});

rule("10: a late rejection reaches no other run", async () => {
  const next = (outer: Change[]) =>
    withRealms({ outer }, async (realms, said) => {
      realms.receive(order("Promise.reject(new Error('of the first')); return 0;"));
      await realms.end();
      said.length = 0;
      realms.receive(order("await new Promise((then) => setTimeout(then, 5)); return 'closed';"));
      await until(said);
      return said.at(-1);
    });
  strictEqual(await next([]), '{"kind":"returned","value":"closed"}');
  notStrictEqual(await next([["await this.#turn();", ""]]), '{"kind":"returned","value":"closed"}');
});

/** Starts the standing Worker; returns its first words, and those after a program. */
async function standing(text: string, code: string): Promise<unknown[]> {
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module" });
  const { port1, port2 } = new MessageChannel();
  const said: unknown[] = [];
  worker.onerror = (event) => {
    event.preventDefault();
    said.push("lost");
  };
  port1.onmessage = ({ data }) => said.push(data);
  worker.postMessage(null, [port2]);
  try {
    await until(said as Said);
    port1.postMessage(order(code));
    await until(said as Said, 2);
    await later(5);
    return said;
  } finally {
    worker.terminate();
    port1.close();
    URL.revokeObjectURL(url);
  }
}

rule("10: a rejection that nobody handles ends the run and not the Worker", async () => {
  const code = "Promise.reject(new Error('mine')); await new Promise(() => {});";
  const [ready, threw] = await standing(buildRealm(), code);
  strictEqual(ready, null);
  strictEqual(JSON.parse(threw as string).message, "mine");
  const without = changed(buildRealm(), [["event.preventDefault();", ""]]);
  ok((await standing(without, code)).includes("lost"));
});

rule("11: compiled programs are kept up to a number of characters", async () => {
  const url = URL.createObjectURL(
    new Blob([`${buildOuter()}\nexport { Scripts };`], { type: "text/javascript" }),
  );
  const { Scripts } = await import(url);
  const scripts = new Scripts(1_000);
  const first = scripts.of("return 1;", null);
  strictEqual(scripts.of("return 1;", null), first);
  notStrictEqual(scripts.of("return 1;", 0), first);
  for (let i = 0; i < 100; i++) {
    scripts.of(`return ${i};${" ".repeat(90)}`, null);
    ok(scripts.characters <= 1_000);
  }
  notStrictEqual(scripts.of("return 1;", null), first);
  URL.revokeObjectURL(url);
});

rule("13: no probe gets out on this version of Deno", async () => {
  await withRealms({}, async (realms) => strictEqual(await realms.hit(PROBES), null));
});

rule("13: a Worker whose probe gets out says so and is not ready", async () => {
  const leaking = changed(buildOuter(), [[
    "this.#io = runtime.runInContext(this.#context);",
    "this.#io = runtime.runInContext(this.#context); this.#context.leaked = performance;",
  ]]);
  const [first] = await standing(
    buildRealm(buildInner(), leaking),
    "return 1;",
  ) as string[][];
  const [kind, hit] = first!;
  strictEqual(kind, "unfit");
  ok(hit!.startsWith("walk: "), hit);
});
