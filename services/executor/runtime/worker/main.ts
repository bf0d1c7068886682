/** Runs inside the Worker: waits for one program, runs it once, reports what it does. */
import { Clock, dateOf } from "./clock.ts";
import { consoleOf } from "./console.ts";
import { Deliveries, nextTaskOf } from "./deliveries.ts";
import { describe, describeLoad, type Failure, MODULE } from "./failure.ts";
import { reduceGlobals } from "./globals.ts";
import { flat, toJson } from "./json_safe.ts";
import { deleteProperty, encodeText, join, jsonParse, push, slice, soon } from "./primordials.ts";
import { cryptoOf, Random, seedMath } from "./random.ts";
import { timerFunctions, Timers } from "./timers.ts";
import { type Answer, apiOf, type Bridge, Calls } from "./tools.ts";

/**
 * The one program this Worker runs; `seed` is 32 hexadecimal digits, `now` and `past` are
 * milliseconds: when the run began, and until when an earlier executor has carried it.
 */
interface Run {
  kind: "run";
  code: string;
  args: unknown;
  seed: string;
  now: number;
  past: number;
}

type Inbound = Run | (Answer & { kind: "answer"; now: number });
type Program = (...bound: unknown[]) => Promise<unknown>;

const NAMES = "mcp,capabilities,args,context,console,__pml";
// The inner block lets a program declare names of its own over the bound ones.
const PRELUDE = `export default async(${NAMES})=>{{`;
const CODA = "\n}}";
const MAX_NOTES = 64;

const clock = new Clock();
const random = new Random();

/** Sends texts; notes wait for the end of the current task, or for what must follow them. */
class Outbox implements Bridge {
  #post: (text: string) => void;
  #notes: string[] = [];

  constructor(post: (text: string) => void) {
    this.#post = post;
  }

  call(id: number, node: string | null, tool: string, args: string): void {
    const head = flat({ kind: "call", id, node, tool });
    this.#send(`${slice(head, 0, -1)},"args":${args}}`);
  }

  decide(node: string, outcome: "true" | "false"): void {
    this.#note(flat({ type: "decision", node, outcome }));
  }

  log(level: string, message: string): void {
    this.#note(flat({ type: "log", level, message }));
  }

  returned(value: unknown): void {
    this.#send(`{"kind":"returned","value":${toJson(value)}}`);
  }

  threw(failure: Failure, phase: "load" | "run", call: number | null): void {
    this.#send(flat({ kind: "threw", phase, call, ...failure }));
  }

  #note(note: string): void {
    push(this.#notes, note);
    if (this.#notes.length === 1) soon(() => this.#flush());
    if (this.#notes.length >= MAX_NOTES) this.#flush();
  }

  #send(text: string): void {
    this.#flush();
    this.#post(text);
  }

  #flush(): void {
    if (this.#notes.length === 0) return;
    const notes = join(this.#notes, ",");
    this.#notes = [];
    this.#post(`{"kind":"noted","notes":[${notes}]}`);
  }
}

async function load(code: string): Promise<Program> {
  return (await import(MODULE + encodeText(PRELUDE + code + CODA))).default;
}

async function run(program: Run, outbox: Outbox, calls: Calls): Promise<void> {
  clock.begin(program.now);
  random.begin(program.seed);
  const fail = (thrown: unknown) =>
    outbox.threw(describe(thrown, PRELUDE.length), "run", calls.origin(thrown));
  addFailureListeners(fail);
  let main: Program;
  try {
    main = await load(program.code);
  } catch (thrown) {
    outbox.threw(describeLoad(thrown, PRELUDE.length), "load", null);
    return;
  }
  const { mcp, capabilities, __pml } = apiOf(calls, outbox);
  const { args } = program;
  try {
    outbox.returned(await main(mcp, capabilities, args, args, console, __pml));
  } catch (thrown) {
    fail(thrown);
  }
}

let addFailureListeners: (fail: (thrown: unknown) => void) => void;

/** Everything that touches what the program will not find any more. */
function prepare(port: MessagePort): void {
  const outbox = new Outbox(port.postMessage.bind(port));
  const calls = new Calls(outbox);
  const timers = new Timers(clock, () => calls.settled);
  const deliver = (answer: Answer & { now: number }) => {
    clock.reach(answer.now);
    calls.settle(answer);
  };
  const deliveries = new Deliveries(deliver, nextTaskOf(), () => timers.wake());
  port.onmessage = ({ data }) => {
    const message: Inbound = jsonParse(data);
    if (message.kind === "answer") deliveries.add(message);
    else {
      timers.begin(message.past);
      void run(message, outbox, calls);
    }
  };
  const listen = globalThis.addEventListener.bind(globalThis);
  addFailureListeners = (fail) => {
    listen("unhandledrejection", (event) => {
      event.preventDefault();
      fail((event as PromiseRejectionEvent).reason);
    });
    listen("error", (event) => {
      event.preventDefault();
      fail((event as ErrorEvent).error);
    });
  };
  deleteProperty(AbortSignal, "timeout"); // a timer that no journal orders
  seedMath(random);
  reduceGlobals({
    ...timerFunctions(timers),
    Date: dateOf(clock),
    console: consoleOf((level, message) => outbox.log(level, message)),
    crypto: cryptoOf(random),
    performance: { now: () => clock.sinceStart(), timeOrigin: 0 },
  });
}

addEventListener("message", async (event) => {
  const [port] = (event as MessageEvent).ports;
  await load("return 0 as number"); // the first TypeScript module costs more than the second
  prepare(port!);
  port!.postMessage("ready");
}, { once: true });
