/** Runs inside the Worker: waits for one program, runs it once, reports what it does. */
import { Clock, dateOf } from "./clock.ts";
import { consoleOf } from "./console.ts";
import { Deliveries, nextTaskOf } from "./deliveries.ts";
import { describe, describeLoad, MODULE } from "./failure.ts";
import { reduceGlobals } from "./globals.ts";
import { Outbox } from "./outbox.ts";
import { deleteProperty, encodeText, freeze, jsonParse } from "./primordials.ts";
import { cryptoOf, Random, seedMath } from "./random.ts";
import { reportsOf } from "./reports.ts";
import { timerFunctions, Timers } from "./timers.ts";
import { type Answer, apiOf, Calls } from "./tools.ts";
import { waysOf } from "./ways.ts";

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

const clock = new Clock();
const random = new Random();

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
  const { mcp, capabilities, at } = apiOf(calls);
  const __pml = freeze({ at, ...reportsOf(outbox.tally), ...waysOf() });
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
