/**
 * The rules of realms (docs/sandbox.md), 8 to 13: what each keeps out, and that without it, as the code is
 * changed here, that comes in.
 */
import { notStrictEqual, ok, strictEqual } from "node:assert";
import { buildInner, buildOuter, buildRealm } from "../build.ts";
import {
  type Change,
  changed,
  closed,
  later,
  order,
  rule,
  standing,
  until,
  withRealms,
} from "./changed.ts";
import { PROBES } from "./probes.ts";

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

rule("9: a realm that is made before its program is here has one program", async () => {
  const counting: Change = ["return new Realm(", "globalThis.made.push(0); return new Realm("];
  const made = (globalThis as unknown as { made: number[] }).made = [];
  await withRealms({ outer: [counting] }, async (realms, said) => {
    realms.prepare();
    realms.prepare();
    for (const makes of [1, 2]) {
      realms.receive(order("return 'closed';"));
      await until(said);
      strictEqual(said.at(-1), '{"kind":"returned","value":"closed"}');
      strictEqual(made.length, makes);
      await realms.end();
      said.length = 0;
    }
  });
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

rule("10: a rejection that nobody handles ends the run and not the Worker", async () => {
  const code = "Promise.reject(new Error('mine')); await new Promise(() => {});";
  const [ready, threw] = await standing(buildRealm(), code);
  strictEqual(ready, null);
  strictEqual(JSON.parse(threw as string).message, "mine");
  const without = changed(buildRealm(), [["event.preventDefault();", ""]]);
  ok((await standing(without, code)).includes("lost"));
});

rule("10: realms leave no message channel behind", async () => {
  let channels = 0;
  const Real = MessageChannel;
  globalThis.MessageChannel = class extends Real {
    constructor() {
      super();
      channels++;
    }
  };
  try {
    await withRealms({}, async (realms, said) => {
      for (let run = 1; run <= 3; run++) {
        realms.receive(order("return await mcp.a.b({});"));
        await until(said, 2 * run - 1);
        realms.receive('{"kind":"answer","id":0,"ok":true,"value":"closed","now":1}');
        await until(said, 2 * run);
        strictEqual(said.at(-1), '{"kind":"returned","value":"closed"}');
        await realms.end();
      }
    });
  } finally {
    globalThis.MessageChannel = Real;
  }
  strictEqual(channels, 2);
});

rule(
  "10: what a realm that is over was to be given does not reach the next",
  async () => {
    await withRealms({}, async (realms, said) => {
      realms.receive(order("return await mcp.a.b({});"));
      await until(said);
      for (let id = 0; id < 50; id++) {
        realms.receive(`{"kind":"answer","id":${id},"ok":true,"value":"first","now":1}`);
      }
      await realms.end();
      said.length = 0;
      realms.receive(order("return await mcp.a.b({});"));
      await until(said);
      await later(5);
      strictEqual(said.length, 1);
      realms.receive('{"kind":"answer","id":0,"ok":true,"value":"closed","now":1}');
      await until(said, 2);
      strictEqual(said.at(-1), '{"kind":"returned","value":"closed"}');
    });
  },
);

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
