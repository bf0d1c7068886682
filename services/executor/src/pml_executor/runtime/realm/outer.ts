/**
 * The outer side of realms: one standing Worker, and a fresh context of `node:vm` for each run.
 *
 * Rules that keep a program inside its context (docs/sandbox.md, "Realms"): no object or function of
 * this side enters it; this side calls one inner function, `io`, and of what comes back looks at
 * nothing but `typeof` and, of a text, its length. It never awaits, spreads, converts, posts or
 * reads properties of anything else, and never binds what the inner side throws.
 */
import { stripTypeScriptTypes } from "node:module";
import * as vm from "node:vm";
import { Deliveries, nextTaskOf } from "../worker/deliveries.ts";
import { moduleHead } from "../worker/module_text.ts";
import { HEAD, TAIL } from "./head.ts";

type Io = (op: string, given: unknown) => unknown;

/** What this side posts: a text of the program's; null when ready; a report of its own. */
export type Post = (data: string | null | [kind: string, message: string]) => void;

/** A program, or a capability of it, as the executor sends it. */
interface Order {
  code: string;
  capabilities: { code: string }[];
}

const MAX_SCRIPT_CHARACTERS = 1_000_000;
const OPTIONS: vm.CreateContextOptions = {
  // Without these a context allows again what the process's flags forbid.
  codeGeneration: { strings: false, wasm: false },
  // A queue of its own: nothing of a realm that is over runs among the microtasks of another.
  microtaskMode: "afterEvaluate",
};
const DRAIN = new vm.Script("0");

/** Compiled programs, the last used ones, bounded by the characters of their texts. */
export class Scripts {
  #scripts = new Map<string, vm.Script>();
  #characters = 0;
  #most: number;

  constructor(most = MAX_SCRIPT_CHARACTERS) {
    this.#most = most;
  }

  get characters(): number {
    return this.#characters;
  }

  /** Returns the script of a program or capability. Throws where its text is no JavaScript. */
  of(code: string, capability: number | null): vm.Script {
    const key = `${capability ?? ""}:${code}`;
    const found = this.#scripts.get(key);
    if (found !== undefined) {
      this.#scripts.delete(key);
      this.#scripts.set(key, found);
      return found;
    }
    const script = new vm.Script(blanked(HEAD + code + TAIL), {
      filename: `${moduleHead(capability)}program`,
    });
    this.#scripts.set(key, script);
    this.#characters += key.length;
    for (const old of this.#scripts.keys()) {
      if (this.#characters <= this.#most) break;
      this.#scripts.delete(old);
      this.#characters -= old.length;
    }
    return script;
  }
}

/**
 * Replaces types by blanks, so that positions stay. Throws where more than that would be needed, and
 * where `<!--` or `-->` stands: in a script these begin comments, and in the module that is parsed
 * here they are operators. Where they are neither, the program has a Worker for nothing.
 */
function blanked(text: string): string {
  if (text.includes("<!--") || text.includes("-->")) throw new SyntaxError("a comment of HTML");
  const plain = stripTypeScriptTypes(text);
  if (plain.length !== text.length) throw new SyntaxError("types cannot be blanked in place");
  return plain;
}

/** The context of one run, until `end`. */
class Realm {
  #context: vm.Context;
  #io: Io;
  #post: Post;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #over = false;
  #tasks: Deliveries<() => void>;

  /** `tasks` are the Worker's: the message channels behind them stay as long as it does. */
  constructor(runtime: vm.Script, post: Post, tasks: Deliveries<() => void>) {
    this.#post = post;
    this.#tasks = tasks;
    this.#context = vm.createContext(vm.constants.DONT_CONTEXTIFY as unknown as object, OPTIONS);
    this.#io = runtime.runInContext(this.#context);
  }

  /** Runs a program: its own script first, then those of its capabilities. */
  run(order: string, scripts: readonly vm.Script[]): void {
    const io = this.#io; // called alone: as a method it would be given this object
    try {
      io("run", order);
      for (const script of scripts) io("main", script.runInContext(this.#context));
    } catch {
      // A text that is more than one function has thrown, or our side: either way no main is there.
      try {
        io("main", undefined);
      } catch {
        return this.#breach();
      }
    }
    this.drive("go", "");
  }

  /** Does one thing in a task of its own, after those before it. */
  add(op: string, text: string): void {
    this.#tasks.add(() => this.drive(op, text));
  }

  /** Does one thing with everything that follows from it, and passes on what is to be sent. */
  drive(op: string, given: unknown): void {
    if (this.#over) return;
    const io = this.#io;
    try {
      io("time", `${performance.now()}`);
      io(op, given);
      DRAIN.runInContext(this.#context);
      while (this.#pass(io("take", ""))) { /* until nothing is left */ }
      if (!this.#over) this.#wait(io("due", ""));
    } catch {
      this.#breach();
    }
  }

  /** Never enters the context again. */
  end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#io = () => "";
    this.#context = {};
  }

  #pass(text: unknown): boolean {
    if (typeof text !== "string") this.#breach();
    else if (text.length > 0) this.#post(text);
    return typeof text === "string" && text.length > 0;
  }

  #wait(due: unknown): void {
    clearTimeout(this.#timer);
    if (typeof due !== "string" || due.length > 30) this.#breach();
    else if (due.length > 0) {
      this.#timer = setTimeout(() => this.add("ring", ""), Math.ceil(Number(due)));
    }
  }

  #breach(): void {
    this.end();
    this.#post(["breach", "the program changed its realm's interface"]);
  }
}

/** Runs one program after the other, each in a realm of its own. */
export class Realms {
  #runtime: vm.Script;
  #post: Post;
  #scripts = new Scripts();
  #realm: Realm | null = null;
  #next: Realm | null = null;
  #tasks = new Deliveries<() => void>((task) => task(), nextTaskOf(), () => {});

  /** `runtime` is the text of the inner side, whose value is `io`. */
  constructor(runtime: string, post: Post) {
    this.#runtime = new vm.Script(runtime, { filename: "pml:realm" });
    this.#post = post;
  }

  /** Takes a message of the executor's. */
  receive(text: string): void {
    const { kind } = JSON.parse(text);
    if (kind === "run") this.#run(text);
    else this.#realm?.add(kind, text);
  }

  /** Makes the realm of the next program, before its program is here. */
  prepare(): void {
    this.#next ??= this.#make();
  }

  /** Passes a rejection that nobody handles to the realm that it must come from. */
  rejected(reason: unknown): void {
    this.#realm?.drive("rejected", reason);
  }

  /** Leaves the realm for good; once its last rejections are reported, another may follow. */
  async end(): Promise<void> {
    this.#realm?.end();
    this.#realm = null;
    // The first may be over at once; between two of them the event loop turns.
    for (let turns = 0; turns < 3; turns++) {
      await this.#turn();
    }
  }

  /** Returns the goal that one of the probes reached, or null: none escapes here. */
  async hit(probes: Readonly<Record<string, string>>): Promise<string | null> {
    for (const [goal, code] of Object.entries(probes)) {
      const said: unknown[] = [];
      const post = this.#post;
      this.#post = (data) => said.push(data);
      this.#run(JSON.stringify({ ...PROBE, code }));
      await this.end();
      this.#post = post;
      if (said.length !== 1 || said[0] !== '{"kind":"returned","value":"closed"}') {
        return `${goal}: ${JSON.stringify(said)}`.slice(0, 500);
      }
    }
    return null;
  }

  #run(text: string): void {
    const { code, capabilities }: Order = JSON.parse(text);
    let scripts: vm.Script[];
    try {
      scripts = [
        this.#scripts.of(code, null),
        ...capabilities.map((one, number) => this.#scripts.of(one.code, number)),
      ];
    } catch (error) { // thrown by this side, about the text
      return this.#post(["unsuited", String(error).slice(0, 500)]);
    }
    this.#realm = this.#next ?? this.#make();
    this.#next = null;
    this.#realm.run(text, scripts);
  }

  #make(): Realm {
    return new Realm(this.#runtime, this.#post, this.#tasks);
  }

  #turn(): Promise<void> {
    return new Promise((then) => this.#tasks.add(then));
  }
}

const PROBE = { kind: "run", capabilities: [], args: {}, seed: "0".repeat(32), now: 0, past: 0 };
