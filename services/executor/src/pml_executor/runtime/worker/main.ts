/** Entry point of the Worker: waits for one program, runs it once, and reports its actions. */
import type { Program } from "./capabilities.ts";
import { Clock } from "./clock.ts";
import { Deliveries, nextTaskOf } from "./deliveries.ts";
import { describeLoad, placeOf } from "./failure.ts";
import { freezeMembers } from "./intrinsics.ts";
import { moduleHead, NAMES } from "./module_text.ts";
import { Outbox } from "./outbox.ts";
import { setGlobals } from "./own_globals.ts";
import { deleteProperty, freeze, jsonParse } from "./primordials.ts";
import { type Order, Run } from "./program.ts";
import { Random } from "./random.ts";
import { Timers } from "./timers.ts";
import { type Answer, Calls } from "./tools.ts";
import { alarm, encodeText, soon } from "./web.ts";

type Inbound = Order | (Answer & { kind: "answer"; now: number }) | { kind: "pause" };

// The inner block lets a program declare names of its own over the bound ones.
const PRELUDE = `export default async(${NAMES})=>{{`;
const CODA = "\n}}";

const clock = new Clock();
const random = new Random();

/** Loads a program, or the capability with this number. */
async function load(code: string, capability: number | null): Promise<Program> {
  return (await import(moduleHead(capability) + encodeText(PRELUDE + code + CODA))).default;
}

async function run(order: Order, outbox: Outbox, calls: Calls): Promise<void> {
  if (order.capabilities.length > 0) freezeMembers();
  clock.begin(order.now);
  random.begin(order.seed);
  const run = new Run(order, outbox, calls, PRELUDE.length);
  addFailureListeners((thrown) => run.fail(thrown));
  let main: Program;
  try {
    const loading = order.capabilities.map(({ code }, number) => load(code, number));
    const [first, ...others] = await Promise.all([load(order.code, null), ...loading]);
    run.know(others);
    main = first!;
  } catch (thrown) {
    const noOrigin = { call: null, capability: null };
    outbox.threw(describeLoad(thrown, PRELUDE.length), "load", noOrigin);
    return;
  }
  await run.go(main);
}

let addFailureListeners: (fail: (thrown: unknown) => void) => void;

/**
 * Sets up everything that uses globals which are then removed for the program, and returns what
 * receives the port. Called before that is here: meanwhile the host is still sending it.
 */
function prepare(): (port: MessagePort) => void {
  let post: (text: string) => void;
  const outbox = new Outbox((text) => post(text));
  const calls = new Calls(outbox, (site) => placeOf(site, PRELUDE.length));
  const timers = new Timers(clock, () => calls.settled, alarm);
  const deliver = (answer: Answer & { now: number }) => {
    clock.reach(answer.now);
    calls.settle(answer);
  };
  const deliveries = new Deliveries(deliver, nextTaskOf(), () => timers.wake());
  const receive = ({ data }: MessageEvent) => {
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
  // Deno calls these on ports and events of ours: a replacement would receive our port.
  for (const { prototype } of [EventTarget, Event, AbortSignal]) {
    freeze(prototype);
  }
  deleteProperty(AbortSignal, "timeout"); // a timer that no journal orders
  // Blobs belong to the process: one could be left behind, and that of our own code revoked.
  deleteProperty(URL, "createObjectURL");
  deleteProperty(URL, "revokeObjectURL");
  soon(() => {}); // at its first use Deno looks up V8's own, and meanwhile removes its name
  setGlobals({ clock, random, timers, outbox });
  return (port) => {
    post = port.postMessage.bind(port);
    port.onmessage = receive;
    post("ready");
  };
}

const port = new Promise<MessagePort>((received) => {
  const listener = (event: Event) => received((event as MessageEvent).ports[0]!);
  addEventListener("message", listener, { once: true });
});
await load("return 0 as number", null); // the first TypeScript module costs more than the second
const begin = prepare();
begin(await port);
