/** Entry point of the Worker: waits for one program, runs it once, and reports its actions. */
import { type Caller, Capabilities, PROGRAM, type Program } from "./capabilities.ts";
import { Clock, dateOf } from "./clock.ts";
import { consoleOf } from "./console.ts";
import { Deliveries, nextTaskOf } from "./deliveries.ts";
import { describe, describeLoad, moduleHead, placeOf } from "./failure.ts";
import { reduceGlobals } from "./globals.ts";
import { freezeMembers } from "./intrinsics.ts";
import { Outbox } from "./outbox.ts";
import { apply, deleteProperty, encodeText, freeze, jsonParse } from "./primordials.ts";
import { cryptoOf, Random, seedMath } from "./random.ts";
import { reportsOf } from "./reports.ts";
import { timerFunctions, Timers } from "./timers.ts";
import { type Answer, apiOf, Calls } from "./tools.ts";
import { callRowsOf } from "./call_rows.ts";

/** A capability that the program may call by any name in `called_as`. */
interface Injected {
  name: string;
  called_as: string[];
  code: string;
}

/**
 * The only program of this Worker; `seed` is 32 hexadecimal digits, `now` and `past` are
 * milliseconds: the run's start, and the last entry of an earlier executor.
 */
interface Run {
  kind: "run";
  code: string;
  capabilities: Injected[];
  args: unknown;
  seed: string;
  now: number;
  past: number;
}

type Inbound = Run | (Answer & { kind: "answer"; now: number }) | { kind: "pause" };

const NAMES = "mcp,capabilities,args,context,console,__pml";
// The inner block lets a program declare names of its own over the bound ones.
const PRELUDE = `export default async(${NAMES})=>{{`;
const CODA = "\n}}";

const clock = new Clock();
const random = new Random();

/** Loads a program, or the capability with this number. */
async function load(code: string, capability: number | null): Promise<Program> {
  return (await import(moduleHead(capability) + encodeText(PRELUDE + code + CODA))).default;
}

/** Loads the program, and registers its capabilities. */
async function loadAll(program: Run, capabilities: Capabilities): Promise<Program> {
  const loading = program.capabilities.map(({ code }, number) => load(code, number));
  const [main, ...others] = await Promise.all([load(program.code, null), ...loading]);
  program.capabilities.forEach(({ name, called_as }, number) => {
    const capability = { number, name, main: others[number]! };
    for (const known of called_as) capabilities.know(known, capability);
  });
  return main!;
}

/** Returns the values bound in a program, or in one call of a capability. */
function bound(caller: Caller, args: unknown, outbox: Outbox, calling: Capabilities): unknown[] {
  const { mcp, capabilities, at } = apiOf(calling.madeBy(caller));
  const reports = reportsOf({
    add: (node, outcome) =>
      outbox.tally.add(caller.id === null ? node : caller.path + node, outcome, caller.id),
  });
  const console = consoleOf((level, message) => outbox.log(level, message, caller.id));
  const __pml = freeze({ at, ...reports, ...callRowsOf() });
  return [mcp, capabilities, args, args, console, __pml];
}

async function run(program: Run, outbox: Outbox, calls: Calls): Promise<void> {
  if (program.capabilities.length > 0) freezeMembers();
  clock.begin(program.now);
  random.begin(program.seed);
  const capabilities: Capabilities = new Capabilities(
    outbox,
    calls,
    (caller, args) => bound(caller, args, outbox, capabilities),
    PRELUDE.length,
  );
  const fail = (thrown: unknown) =>
    outbox.threw(describe(thrown, PRELUDE.length), "run", capabilities.origin(thrown));
  addFailureListeners(fail);
  let main: Program;
  try {
    main = await loadAll(program, capabilities);
  } catch (thrown) {
    const noOrigin = { call: null, capability: null };
    outbox.threw(describeLoad(thrown, PRELUDE.length), "load", noOrigin);
    return;
  }
  const names = bound(PROGRAM, program.args, outbox, capabilities);
  try {
    outbox.returned(await apply(main, undefined, names));
  } catch (thrown) {
    fail(thrown);
  }
}

let addFailureListeners: (fail: (thrown: unknown) => void) => void;

/** Sets up everything that uses globals which are then removed for the program. */
function prepare(port: MessagePort): void {
  const outbox = new Outbox(port.postMessage.bind(port));
  const calls = new Calls(outbox, (site) => placeOf(site, PRELUDE.length));
  const timers = new Timers(clock, () => calls.settled);
  const deliver = (answer: Answer & { now: number }) => {
    clock.reach(answer.now);
    calls.settle(answer);
  };
  const deliveries = new Deliveries(deliver, nextTaskOf(), () => timers.wake());
  port.onmessage = ({ data }) => {
    const message: Inbound = jsonParse(data);
    if (message.kind === "answer") deliveries.add(message);
    else if (message.kind === "pause") outbox.paused();
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
  // Blobs belong to the process: one could be left behind, and that of our own code revoked.
  deleteProperty(URL, "createObjectURL");
  deleteProperty(URL, "revokeObjectURL");
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
  await load("return 0 as number", null); // the first TypeScript module costs more than the second
  prepare(port!);
  port!.postMessage("ready");
}, { once: true });
