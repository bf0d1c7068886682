// @ts-check
/**
 * The main isolate: no permission, no program code. It starts and stops one Worker at a time, for
 * one program or a standing one for realms (realm/main.ts), relays texts between it and the executor
 * without reading them, and authenticates outgoing ones with a secret that no Worker knows.
 * JavaScript, because a transpiler costs each process 5 ms.
 */
import { frame, FrameReader } from "./frames.js";

/**
 * The first frame, received before any other code exists in this process; `worker` is the code of a
 * Worker for one program, `realm` that of the standing Worker (build.ts).
 *
 * @typedef {{ secret: string, max_body_bytes: number, worker: string, realm: string }} Hello
 */

const READ_BYTES = 65_536;
const OPTIONS = /** @type {WorkerOptions} */ ({ type: "module", deno: { permissions: "none" } });

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** @param {Uint8Array} bytes */
function writeAll(bytes) {
  for (let written = 0; written < bytes.length;) {
    written += Deno.stdout.writeSync(bytes.subarray(written));
  }
}

async function* inbound() {
  const frames = new FrameReader();
  const chunk = new Uint8Array(READ_BYTES);
  let reading = Deno.stdin.read(chunk);
  for (;;) {
    const read = await reading;
    if (read === null) return;
    const bodies = frames.push(chunk.slice(0, read));
    // Before any reply: pending reads are served in order, so a read that a program left behind
    // takes the next input now, when the check detects that, and not later.
    reading = Deno.stdin.read(chunk);
    for (const body of bodies) yield decoder.decode(body);
  }
}

/** @param {string} code */
function urlOf(code) {
  // Blob, not data: a module's URL is copied many times, and its length costs 6 ms of CPU.
  return URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
}

/** Returns a unique nonce; not a secret, since only the executor writes to this process. */
const newNonce = () => crypto.randomUUID();

/**
 * Sets whether reading keeps this isolate's event loop alive; Deno hides that switch behind
 * symbols.
 *
 * @param {"REF" | "UNREF"} kept
 */
function reading(kept) {
  const names = Object.getOwnPropertySymbols(Object.getPrototypeOf(Deno.stdin));
  const name = names.find((name) => name.description === kept);
  if (name !== undefined) /** @type {any} */ (Deno.stdin)[name]();
}

/** @type {Record<string, string>} */
const PARTS = {
  returned: "the result takes",
  left: "the result of a capability takes",
  call: "the arguments of a call take",
  entered: "the arguments of a call of a capability take",
};

/**
 * Describes a message that is too long, whose kind is at its start.
 *
 * @param {string} data
 * @param {number} most
 */
function oversize(data, most) {
  const kind = /^\{"kind":"(\w+)"/.exec(data.slice(0, 40))?.[1] ?? "";
  const part = Object.hasOwn(PARTS, kind) ? PARTS[kind] : "one message of the program takes";
  return `${part} ${data.length} characters of JSON, more than the ${most} that a run can pass on: ` +
    "pass less, as a part, a count or a summary";
}

class Host {
  #secret;
  #maxBody;
  #code;
  #realmText;
  /** @type {{ worker: Worker, port: MessagePort } | null} */
  #isolate = null;
  /** @type {string | undefined} expected in an order to start; the first has none */
  #nonce;
  /** What the standing Worker is waited for with: the nonce of the order. */
  #awaited = "";

  /** @param {Hello} hello */
  constructor(hello) {
    this.#secret = encoder.encode(hello.secret);
    this.#maxBody = hello.max_body_bytes;
    this.#code = urlOf(hello.worker);
    this.#realmText = hello.realm;
    // No event reports a Worker that closes itself; but then nothing keeps the event loop of this
    // isolate alive, provided that reading does not.
    addEventListener("beforeunload", () => {
      if (this.#isolate !== null) this.#report("ended", "the program ended its own Worker");
    });
  }

  /** Starts a fresh Worker for one program. */
  start() {
    let ready = false;
    this.#start(this.#code, (data) => {
      if (ready) this.#pass(data);
      else this.#report("ready");
      ready = true;
    });
  }

  /** Starts the standing Worker; of its own it posts null when ready, and lists of two texts. */
  startRealm() {
    const code = urlOf(this.#realmText);
    let loaded = false;
    this.#start(code, (data) => {
      // Stacks of its errors show the URL, and whoever could read the text would know its names.
      if (!loaded) URL.revokeObjectURL(code);
      loaded = true;
      if (data === null) this.#report("ready", this.#awaited);
      else if (Array.isArray(data)) this.#report(data[0], data[1]);
      else this.#pass(data);
    });
  }

  /**
   * @param {string} code
   * @param {(data: unknown) => void} hear
   */
  #start(code, hear) {
    const { port1: port, port2 } = new MessageChannel();
    const worker = new Worker(code, OPTIONS);
    const isolate = { worker, port };
    this.#isolate = isolate;
    reading("UNREF");
    const current = () => this.#isolate === isolate; // messages of a stopped one are dropped
    port.onmessage = ({ data }) => {
      if (current()) hear(data);
    };
    worker.onmessage = () => {
      if (current()) this.#report("breach", "the program used a channel that is not its own");
    };
    worker.onmessageerror = worker.onmessage;
    worker.onerror = (event) => {
      event.preventDefault();
      if (current()) this.#report("lost", event.message);
    };
    worker.postMessage(null, [port2]);
  }

  /** Terminates the Worker and relays nothing more of it; its thread may outlive that for ever. */
  stop() {
    reading("REF");
    this.#isolate?.port.close();
    this.#isolate?.worker.terminate();
    this.#isolate = null;
    this.#report("stopped");
  }

  /** @param {string} order one of `pml_executor.domain.protocol.Order`, some with a nonce */
  obey(order) {
    const [name, nonce] = order.split(" ");
    if (name === "stop") this.stop();
    else if (name === "check") this.#report("checked", `${nonce} ${this.#nonce = newNonce()}`);
    else if (name === "end") this.#end(nonce ?? "");
    else if (nonce === this.#nonce) name === "realm" ? this.startRealm() : this.start();
  }

  /** @param {string} nonce returned once the standing Worker has left its realm */
  #end(nonce) {
    this.#awaited = nonce;
    this.#isolate?.port.postMessage(null);
  }

  /** @param {string} text a message for the Worker */
  hand(text) {
    this.#isolate?.port.postMessage(text);
  }

  /** @param {unknown} data a message of the program */
  #pass(data) {
    if (typeof data !== "string") {
      this.#report("breach", "the program bypassed its interface");
    } else if (data.length > this.#maxBody) {
      this.#report("oversize", oversize(data, this.#maxBody));
    } else {
      this.#send("p", data);
    }
  }

  /**
   * @param {string} kind
   * @param {string} message
   */
  #report(kind, message = "") {
    this.#send("h", JSON.stringify({ kind, message }));
  }

  /**
   * @param {import("./frames.js").Party} origin
   * @param {string} text
   */
  #send(origin, text) {
    writeAll(frame(this.#secret, origin, encoder.encode(text)));
  }
}

async function serve() {
  const texts = inbound();
  const first = await texts.next();
  if (!first.done) {
    const host = new Host(JSON.parse(first.value));
    for await (const text of texts) {
      if (text[0] === "h") host.obey(text.slice(1));
      else host.hand(text.slice(1));
    }
  }
  Deno.exit(0); // the executor is gone, and no run outlives it
}

if (import.meta.main) void serve(); // awaited here, an event loop that ran dry would be an error
