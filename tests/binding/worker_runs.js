// @ts-check
/**
 * Runs instrumented programs in real Workers of the sandbox, one after the other, and plays the
 * executor: every call gets an answer that follows from the call. The first line of input is the
 * Worker's code, as JSON; every other a list of programs; each list is answered by a line with
 * what its programs did: calls and answers in their order, and the end.
 *
 * @typedef {{ code: string, args: unknown,
 *   capabilities: { name: string, called_as: string[], code: string }[] }} Program
 * @typedef {{ worker: Worker, port: MessagePort }} Isolate
 */
const MOST_CALLS = 120;
/** A Worker costs fifty times a program. These programs leave nothing behind but what waits. */
const PROGRAMS_PER_WORKER = 50;
const STUCK_AFTER_MS = 20_000;
const OPTIONS = /** @type {WorkerOptions} */ ({ type: "module", deno: { permissions: "none" } });
const NOW = 1_700_000_000_000;

/** @param {string} text */
function hash(text) {
  let sum = 7;
  for (let at = 0; at < text.length; at++) sum = (sum * 31 + text.charCodeAt(at)) >>> 0;
  return (sum ^ (sum >>> 11)) >>> 0;
}

/** What a tool answers: mostly an object with parts of every kind, no two alike. @param {number} sum */
function answer(sum) {
  const whole = {
    a: `a${sum}`,
    k: sum % 7,
    field: [sum, { b: `b${sum}` }],
    items: [{ a: `x${sum}`, k: [1] }, { a: `y${sum}`, k: [sum] }],
    meta: { a: { b: sum % 3 === 0 ? null : `z${sum}` } },
  };
  const others = [null, [sum, `l${sum}`], `t${sum}`, sum];
  return sum % 11 < others.length ? others[sum % 11] : whole;
}

/** What waits for nothing but this task has happened. */
const settled = () => new Promise((done) => setTimeout(done, 0));

class Runs {
  #code;
  /** @type {Promise<Isolate> | null} */
  #isolate = null;
  #left = 0;

  /** @param {string} code */
  constructor(code) {
    this.#code = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  }

  /** @returns {Promise<Isolate>} */
  #start() {
    const { port1: port, port2 } = new MessageChannel();
    const worker = new Worker(this.#code, OPTIONS);
    worker.onerror = (event) => event.preventDefault();
    worker.postMessage(null, [port2]);
    return new Promise((ready) => {
      port.onmessage = () => ready({ worker, port });
    });
  }

  async #drop() {
    const isolate = await this.#isolate;
    isolate?.port.close();
    isolate?.worker.terminate();
    this.#isolate = null;
  }

  /** @param {Program} program */
  async run(program) {
    if (this.#left-- === 0) {
      await this.#drop();
      this.#left = PROGRAMS_PER_WORKER - 1;
    }
    this.#isolate ??= this.#start();
    const { port } = await this.#isolate;
    /** @type {unknown[]} */
    const events = [];
    const { promise, resolve } = Promise.withResolvers();
    const patience = setTimeout(() => resolve("stuck"), STUCK_AFTER_MS);
    let calls = 0, over = false;
    /** @param {any} message */
    const reply = async (message) => {
      const { id, tool, args } = message;
      const sum = hash(tool + JSON.stringify(args));
      for (let turn = sum % 3; turn > 0; turn--) await settled();
      if (over) return;
      const ok = !(tool.endsWith(":post") && sum % 5 === 0);
      const value = ok ? answer(sum) : null;
      events.push({ kind: "answer", id, ok, value });
      const now = NOW + events.length;
      port.postMessage(JSON.stringify({ kind: "answer", id, ok, value, message: "no", now }));
    };
    port.onmessage = ({ data }) => {
      for (const line of String(data).split("\n")) {
        const message = JSON.parse(line);
        if (over) return;
        if (message.kind === "call") {
          events.push(message);
          if (++calls > MOST_CALLS) resolve("out of calls");
          else void reply(message);
        } else if (message.kind === "returned") resolve("returned");
        else if (message.kind === "threw") {
          resolve(`${message.phase}: ${message.name}: ${message.message}`);
        }
      }
    };
    const seed = "0".repeat(32);
    port.postMessage(JSON.stringify({ kind: "run", ...program, seed, now: NOW, past: 0 }));
    const end = await promise;
    over = true;
    clearTimeout(patience);
    await settled();
    if (end === "stuck" || end === "out of calls") this.#left = 0;
    return { end, events };
  }
}

/** @type {Runs | null} */
let runs = null;
let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    if (runs === null) {
      runs = new Runs(JSON.parse(line));
      continue;
    }
    const done = [];
    for (const program of JSON.parse(line)) done.push(await runs.run(program));
    console.log(JSON.stringify(done));
  }
}
Deno.exit(0);
