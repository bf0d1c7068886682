// @ts-check
/**
 * Runs instrumented programs in real Workers of the sandbox, one after the other, and plays the
 * executor: every call gets an answer that follows from the call. The first line of input is the
 * Worker's code, as JSON; every other a list of programs; each list is answered by a line with
 * what its programs did: calls and answers in their order, and the end.
 *
 * @typedef {{ code: string, args: unknown, answers: Record<string, unknown>,
 *   capabilities: { name: string, called_as: string[], code: string }[] }} Program
 * @typedef {{ worker: Worker, port: MessagePort }} Isolate
 */
const MOST_CALLS = 120;
/** A Worker costs fifty times a program. These programs leave nothing behind but what waits. */
const PROGRAMS_PER_WORKER = 50;
/** A program that owes nothing and is owed nothing for so long waits for what never comes. */
const IDLE_AFTER_MS = 1_000;
const OPTIONS = /** @type {WorkerOptions} */ ({ type: "module", deno: { permissions: "none" } });
const NOW = 1_700_000_000_000;
const REST = "worker:rest";

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

/** One program in a Worker: what it does, and the answers that it gets. */
class Conversation {
  /** @type {unknown[]} */
  events = [];
  #port;
  #answers;
  #calls = 0;
  #owed = 0;
  #over = false;
  #ended = Promise.withResolvers();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #idle;

  /**
   * @param {MessagePort} port
   * @param {Program} program
   */
  constructor(port, program) {
    this.#port = port;
    this.#answers = program.answers;
    port.onmessage = ({ data }) => {
      for (const line of String(data).split("\n")) if (!this.#over) this.#hear(JSON.parse(line));
    };
    this.#run(program);
  }

  async end() {
    const end = await this.#ended.promise;
    clearTimeout(this.#idle);
    return end;
  }

  /**
   * Until what the program left behind has come to rest: a next one would be taken for it. Answers
   * are handed out in order, so once this one is, all others were.
   */
  async rest() {
    const { promise, resolve } = Promise.withResolvers();
    this.#port.onmessage = ({ data }) => {
      for (const message of String(data).split("\n").map((line) => JSON.parse(line))) {
        const value = REST;
        if (message.tool === REST) {
          this.#say({ kind: "answer", id: message.id, ok: true, value, now: NOW });
        }
        if (message.kind === "returned" && message.value === REST) resolve(null);
      }
    };
    this.#run({
      code: `return await mcp.call("${REST}", {});`,
      args: {},
      capabilities: [],
      answers: {},
    });
    await promise;
  }

  /** @param {Program} program */
  #run(program) {
    this.#say({ kind: "run", ...program, seed: "0".repeat(32), now: NOW, past: 0 });
  }

  /** @param {any} message */
  #hear(message) {
    this.#wait();
    if (message.kind === "call") {
      this.events.push(message);
      if (++this.#calls > MOST_CALLS) this.#finish("out of calls");
      else void this.#reply(message);
    } else if (message.kind === "returned") {
      this.#finish("returned");
    } else if (message.kind === "threw") {
      this.#finish(`${message.phase}: ${message.name}: ${message.message}`);
    }
  }

  /** @param {{ id: number, tool: string, args: unknown }} call */
  async #reply({ id, tool, args }) {
    this.#owed++;
    const sum = hash(tool + JSON.stringify(args));
    for (let turn = sum % 3; turn > 0; turn--) await settled();
    this.#owed--;
    if (this.#over) return;
    const known = Object.hasOwn(this.#answers, tool);
    const ok = known || !(tool.endsWith(":post") && sum % 5 === 0);
    const value = known ? this.#answers[tool] : ok ? answer(sum) : null;
    this.events.push({ kind: "answer", id, ok, value });
    this.#say({ kind: "answer", id, ok, value, message: "no", now: NOW + this.events.length });
    this.#wait();
  }

  /** @param {unknown} message */
  #say(message) {
    this.#port.postMessage(JSON.stringify(message));
  }

  #wait() {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#owed === 0 && this.#finish("idle"), IDLE_AFTER_MS);
  }

  /** @param {string} how */
  #finish(how) {
    this.#over = true;
    this.#ended.resolve(how);
  }
}

class Runs {
  #code;
  /** @type {Isolate | null} */
  #isolate = null;
  #left = 0;

  /** @param {string} code */
  constructor(code) {
    this.#code = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  }

  /** @param {Program} program */
  async run(program) {
    const { port } = await this.#fresh();
    const conversation = new Conversation(port, program);
    const end = await conversation.end();
    if (end === "idle" || end === "out of calls") this.#left = 0;
    else await conversation.rest();
    return { end, events: conversation.events };
  }

  /** @returns {Promise<Isolate>} */
  async #fresh() {
    if (this.#isolate !== null && this.#left-- > 0) return this.#isolate;
    this.#isolate?.port.close();
    this.#isolate?.worker.terminate();
    this.#left = PROGRAMS_PER_WORKER;
    const { port1: port, port2 } = new MessageChannel();
    const worker = new Worker(this.#code, OPTIONS);
    worker.onerror = (event) => event.preventDefault();
    const ready = new Promise((done) => {
      port.onmessage = done;
    });
    worker.postMessage(null, [port2]);
    await ready;
    return this.#isolate = { worker, port };
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
