/**
 * The main isolate: no permission, no program code. It creates the Worker, passes texts between
 * it and the executor without reading them, and signs what goes out with a secret that no Worker
 * has seen.
 */
import { bundle } from "./bundle.ts";
import { frame, FrameReader, type Origin } from "./frames.ts";
import capabilities from "./worker/capabilities.ts" with { type: "text" };
import clock from "./worker/clock.ts" with { type: "text" };
import console_ from "./worker/console.ts" with { type: "text" };
import deliveries from "./worker/deliveries.ts" with { type: "text" };
import failure from "./worker/failure.ts" with { type: "text" };
import globals from "./worker/globals.ts" with { type: "text" };
import jsonSafe from "./worker/json_safe.ts" with { type: "text" };
import main from "./worker/main.ts" with { type: "text" };
import outbox from "./worker/outbox.ts" with { type: "text" };
import primordials from "./worker/primordials.ts" with { type: "text" };
import random from "./worker/random.ts" with { type: "text" };
import reports from "./worker/reports.ts" with { type: "text" };
import tally from "./worker/tally.ts" with { type: "text" };
import timers from "./worker/timers.ts" with { type: "text" };
import tools from "./worker/tools.ts" with { type: "text" };
import ways from "./worker/ways.ts" with { type: "text" };

/** The first frame: what this process must know before any other code exists in it. */
interface Hello {
  secret: string;
  max_body_bytes: number;
}

const WORKER = bundle([
  primordials,
  jsonSafe,
  clock,
  timers,
  random,
  console_,
  failure,
  tools,
  capabilities,
  tally,
  reports,
  ways,
  outbox,
  deliveries,
  globals,
  main,
]);
const READ_BYTES = 65_536;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function writeAll(bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length;) {
    written += Deno.stdout.writeSync(bytes.subarray(written));
  }
}

async function* inbound(): AsyncGenerator<string> {
  const frames = new FrameReader();
  const chunk = new Uint8Array(READ_BYTES);
  for (;;) {
    const read = await Deno.stdin.read(chunk);
    if (read === null) return;
    for (const body of frames.push(chunk.slice(0, read))) yield decoder.decode(body);
  }
}

/**
 * A Worker that closes itself is announced by no event; but then nothing keeps the event loop of
 * this isolate, provided that reading does not: Deno hides that switch behind a symbol.
 */
function whenWorkerEnds(tell: () => void): void {
  const names = Object.getOwnPropertySymbols(Object.getPrototypeOf(Deno.stdin));
  const unref = names.find((name) => name.description === "UNREF");
  if (unref === undefined) return;
  (Deno.stdin as unknown as Record<symbol, () => void>)[unref]!();
  addEventListener("beforeunload", tell, { once: true });
}

/** Starts the Worker; returns what hands it a text. */
function startWorker(hello: Hello): (text: string) => void {
  const secret = encoder.encode(hello.secret);
  const send = (origin: Origin, text: string) =>
    writeAll(frame(secret, origin, encoder.encode(text)));
  const report = (kind: string, message = "") => send("h", JSON.stringify({ kind, message }));

  const { port1: port, port2 } = new MessageChannel();
  let ready = false;
  port.onmessage = ({ data }) => {
    if (!ready) {
      ready = true;
      report("ready");
    } else if (typeof data !== "string") {
      report("breach", "the program bypassed its interface");
    } else if (data.length > hello.max_body_bytes) {
      report("oversize", `${data.length} bytes in one message`);
    } else {
      send("p", data);
    }
  };

  const options = { type: "module", deno: { permissions: "none" } } as const;
  // Blob, not data: a module's URL is handled many times over, and its length costs 6 ms of CPU.
  const url = URL.createObjectURL(new Blob([WORKER], { type: "text/typescript" }));
  const worker = new Worker(url, options as WorkerOptions);
  worker.onmessage = () => report("breach", "the program used a channel that is not its own");
  worker.onmessageerror = worker.onmessage;
  worker.onerror = (event) => {
    event.preventDefault();
    report("lost", event.message);
  };
  worker.postMessage(null, [port2]);
  whenWorkerEnds(() => report("ended", "the program ended its own Worker"));
  return (text) => port.postMessage(text);
}

async function serve(): Promise<void> {
  const texts = inbound();
  const first = await texts.next();
  if (!first.done) {
    const forward = startWorker(JSON.parse(first.value));
    for await (const text of texts) forward(text);
  }
  Deno.exit(0); // nobody is left to answer to: no run outlives its executor
}

if (import.meta.main) void serve(); // awaited here, an event loop that ran dry would be an error
