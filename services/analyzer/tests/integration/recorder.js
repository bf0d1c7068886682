// Loads programs like the sandbox and runs them against tools that record their calls and answer
// by their arguments. Reads one list of programs per line, as JSON; writes for each list the
// behaviour of its programs, and for one that does not load the reason.
const FUEL = 300;
const ARGS = { a: "A", free: "F", s: "fs", n: 2, list: [1, 2], none: null, o: { k: 1, field: [0] } };
const ANSWERS = [null, { a: 1 }, [1, 2], "s", 0, { field: [1], a: null }, true, 3, ""];
const RISKY = new Set(["http:post", "fs:write"]);
const NAMES = "mcp,capabilities,args,context,console,__pml";

async function load(code) {
  const bytes = new TextEncoder().encode(`export default async(${NAMES})=>{${code}\n}`);
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return (await import(`data:application/typescript;base64,${text}`)).default;
}

function hash(text) {
  let sum = 7;
  for (let at = 0; at < text.length; at++) sum = (sum * 31 + text.charCodeAt(at)) >>> 0;
  return (sum ^ (sum >>> 11)) >>> 0;
}

/** A tool's answer, some turns of the microtask queue later; the same for the same call. */
async function answer(tool, given) {
  const sum = hash(`${tool}${given}`);
  for (let turn = sum % 5; turn > 0; turn--) await null;
  if (RISKY.has(tool) && (sum >>> 3) % 3 === 0) throw new Error(`${tool} failed`);
  return structuredClone(ANSWERS[(sum >>> 5) % ANSWERS.length]);
}

/** One run: its calls, the reported path, and its end. */
class Run {
  calls = [];
  ended = []; // which call, how many had begun by then, with what
  path = [];
  over = false;
  spent = Promise.withResolvers();
  noting = new WeakMap();

  call(tool, given, node) {
    const args = JSON.stringify(given) ?? null;
    if (!this.over) {
      this.calls.push([tool, args, node]);
      if (node !== null) this.path.push([node, null]);
      if (this.calls.length > FUEL) this.stop("out of fuel");
    }
    if (this.over) return new Promise(() => {});
    const number = this.calls.length - 1;
    const answered = answer(tool, args).then((value) => {
      if (!this.over) this.ended.push([number, this.calls.length, structuredClone(value)]);
      return value;
    });
    answered.catch(() => {});
    return answered;
  }

  report(node, outcome) {
    if (!this.over) this.path.push([node, outcome]);
  }

  stop(why) {
    this.over = true;
    this.spent.resolve({ stopped: why });
  }

  /** Returns a function that calls for a given node. */
  callable(make) {
    const plain = make(null);
    this.noting.set(plain, make);
    return plain;
  }

  tools() {
    const every = (make) => {
      const made = new Map();
      return new Proxy({}, {
        get: (_, name) => {
          if (name === "then" || typeof name !== "string") return undefined;
          if (!made.has(name)) made.set(name, make(name));
          return made.get(name);
        },
      });
    };
    const tool = (name) => this.callable((node) => (given) => this.call(name, given, node));
    const byName = this.callable((node) => (name, given) => this.call(name, given, node));
    return every((server) =>
      server === "call" ? byName : every((name) => tool(`${server}:${name}`))
    );
  }

  /** The interface that instrumented programs report to. */
  pml() {
    const open = new Map();
    let pending = null;
    return {
      at: (node, callee) => this.noting.get(callee)?.(node) ?? callee,
      decide: (node, value) => (this.report(node, String(Boolean(value))), value),
      absent: (node, value) => (this.report(node, String(value == null)), value),
      last: (...values) => values.at(-1),
      subject: (node, value) => (open.set(node, (open.get(node) ?? 0) + 1), value),
      chosen: (node, outcome) => {
        const choices = open.get(node) ?? 0;
        if (choices === 0) return;
        open.set(node, choices - 1);
        this.report(node, outcome);
      },
      took: (node, outcome) => this.report(node, outcome),
      dropped: (_line, _column, value) => value,
      returned: (...given) => given.at(-1),
      round: (node) => this.report(node, null),
      via: (row, key, callee) =>
        function (...given) {
          pending = { row, key };
          return Reflect.apply(callee, this, given);
        },
      entered: (key, otherwise) => {
        if (pending?.key !== key) return otherwise;
        const { row } = pending;
        pending = null;
        return row;
      },
    };
  }

  async end(code) {
    const main = await load(code);
    const args = structuredClone(ARGS);
    const ended = main(this.tools(), {}, args, args, console, this.pml()).then(
      (value) => ({ value: JSON.stringify(value) ?? "undefined" }),
      (error) => ({ error: described(error) }),
    );
    const { promise, resolve } = Promise.withResolvers();
    const idle = setTimeout(() => resolve({ stopped: "waits for ever" }), 0);
    const end = await Promise.race([ended, this.spent.promise, promise]);
    clearTimeout(idle);
    this.stop("over");
    return { end, calls: this.calls, ended: this.ended, path: this.path };
  }
}

/** Name and message; the line of the program's own text that threw the error. */
function described(error) {
  if (!(error instanceof Error)) return { thrown: JSON.stringify(error) ?? "undefined" };
  const [frame] = error.stack.split("\n").filter((line) => /^ +at .*:\d+:\d+\)?$/.test(line));
  const own = /data:application\/typescript.*:(\d+):\d+\)?$/.exec(frame ?? "");
  return { name: error.name, message: error.message, line: own && Number(own[1]) };
}

async function runAll(programs) {
  const done = [];
  for (const code of programs) {
    try {
      done.push(await new Run().end(code));
    } catch (error) {
      done.push(String(error));
    }
  }
  return done;
}

addEventListener("unhandledrejection", (event) => event.preventDefault());
let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop();
  for (const line of lines) console.log(JSON.stringify(await runAll(JSON.parse(line))));
}
