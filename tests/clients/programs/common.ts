/** What each TypeScript client is asked to do; as `common.py`. */

type Answer = Record<string, unknown>;

export interface Connection {
  names(): Promise<string[]>;
  call(name: string, args: Answer, signal?: AbortSignal): Promise<Answer>;
  close(): Promise<void>;
}

export type Connect = (
  url: string,
  approves: boolean,
  changed: () => void,
) => Promise<Connection>;

const WITHIN_MS = 30_000;
const HELD_MS = 1_000;
const [url, firstText] = Deno.args;
const first = Number(firstText);

function say(told: Answer): void {
  Deno.stdout.writeSync(new TextEncoder().encode(JSON.stringify(told) + "\n"));
}

function check(holds: boolean, answer: unknown): void {
  if (!holds) throw new Error(JSON.stringify(answer));
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const step = (n: number) => `return await mcp.counting.step({ n: ${n} });`;

export async function go(
  connect: Connect,
  cannot: Record<string, string> = {},
): Promise<void> {
  const using = async (
    approves: boolean,
    work: (client: Connection) => Promise<void>,
    changed: () => void = () => {},
  ) => {
    const client = await connect(url, approves, changed);
    try {
      await work(client);
    } finally {
      await client.close();
    }
  };
  const checks: Record<string, () => Promise<void>> = {
    list: () =>
      using(false, async (client) => {
        const names = await client.names();
        check(names.includes("pml_execute") && names.includes("counting_step"), names);
      }),
    run: () =>
      using(false, async (client) => {
        const answer = await client.call("pml_execute", { code: "return 1 + 1;" });
        check(answer.result === 2, answer);
      }),
    next: () =>
      using(false, async (client) => {
        const asked = await client.call("pml_execute", { code: step(first) });
        check(asked.status === "approval_required", asked);
        const { call } = asked.next as { call: { tool: string; arguments: Answer } };
        say({ approve: asked.workflowId });
        const answer = await client.call(call.tool, call.arguments);
        check((answer.result as Answer)?.result === `step ${first} done`, answer);
      }),
    form: () =>
      using(true, async (client) => {
        const answer = await client.call("pml_execute", { code: step(first + 1) });
        check(answer.status === "success", answer);
      }),
    told: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      return using(false, async (client) => {
        const code = `const seen = await mcp.counting.peek({ path: '${first}' });\nreturn seen;`;
        const name = `client:look_${first}`;
        const answer = await client.call("pml_execute", { code, name });
        check(answer.status === "success", answer);
        await promise;
        const until = Date.now() + 10_000;
        while (!(await client.names()).includes(`cap_client_look_${first}`)) {
          check(Date.now() < until, "it is not listed");
          await pause(100);
        }
      }, resolve);
    },
    cancel: () =>
      using(false, async (client) => {
        const intent = `cancel ${first}`;
        const abort = new AbortController();
        const program = { code: "while (true) {}", intent, timeout: 30 };
        const call = client.call("pml_execute", program, abort.signal).catch(() => {});
        await pause(HELD_MS);
        abort.abort();
        await call;
        say({ ended: intent });
        await Deno.stdin.read(new Uint8Array(1));
      }),
  };
  for (const [name, made] of Object.entries(checks)) {
    if (name in cannot) {
      say({ check: name, ok: null, note: cannot[name] });
      continue;
    }
    try {
      await Promise.race([
        made(),
        pause(WITHIN_MS).then(() => {
          throw new Error("no end within 30 s");
        }),
      ]);
      say({ check: name, ok: true, note: "" });
    } catch (error) {
      say({ check: name, ok: false, note: String(error).slice(0, 300) });
    }
  }
  Deno.exit(0);
}
