/**
 * The inner side of a realm: what worker/main.ts is to a Worker, inside a context of `node:vm`.
 *
 * Nothing of the outer side enters a realm, neither object nor function: all that leads out is what
 * `io` returns, which is text. The outer side calls it and pulls (realm/outer.ts).
 */
import type { Program } from "../worker/capabilities.ts";
import { Clock } from "../worker/clock.ts";
import { placeOf } from "../worker/failure.ts";
import { freezeMembers } from "../worker/intrinsics.ts";
import { Outbox } from "../worker/outbox.ts";
import { setGlobals } from "../worker/own_globals.ts";
import {
  defineProperty,
  jsonParse,
  max,
  push,
  RealDate,
  RealError,
  RealTypeError,
  shift,
  toText,
} from "../worker/primordials.ts";
import { type Order, Run } from "../worker/program.ts";
import { Random } from "../worker/random.ts";
import { type Alarm, Timers } from "../worker/timers.ts";
import { type Answer, Calls } from "../worker/tools.ts";
import { HEAD } from "./head.ts";
import { ownSymbols } from "./symbols.ts";
import { soon } from "./web.ts";

/** Maximum length of a text of several messages. */
const MAX_TAKEN = 16_384;

/** Real time as the outer side tells it, and the one call that it is to make. */
class ToldTime implements Alarm {
  #told = 0;
  #since = 0;
  #at = 0;
  #ring: (() => void) | null = null;

  /** Sets the time in milliseconds of a clock that never goes back. */
  tell(ms: number): void {
    this.#told = ms;
    this.#since = RealDate.now();
  }

  now(): number {
    return this.#told + max(0, RealDate.now() - this.#since);
  }

  after(ms: number, ring: () => void): void {
    this.#at = this.now() + max(0, ms);
    this.#ring = ring;
  }

  /** Returns the milliseconds until the call is due, as text; empty without one. */
  get due(): string {
    return this.#ring === null ? "" : toText(max(0, this.#at - this.now()));
  }

  ring(): void {
    const ring = this.#ring;
    this.#ring = null;
    if (ring !== null) ring();
  }
}

/** Messages that the outer side has not taken yet. */
class Pending {
  #texts: string[] = [];

  add(text: string): void {
    push(this.#texts, text);
  }

  /** Returns the next messages, one per line; empty without any. */
  take(): string {
    let taken = "";
    while (this.#texts.length > 0) {
      const next = this.#texts[0]!;
      if (taken !== "" && taken.length + next.length > MAX_TAKEN) break;
      taken = taken === "" ? next : `${taken}\n${next}`;
      shift(this.#texts);
    }
    return taken;
  }
}

const clock = new Clock();
const random = new Random();
const time = new ToldTime();
const pending = new Pending();
const outbox = new Outbox((text) => pending.add(text));
const calls = new Calls(outbox, (site) => placeOf(site, HEAD.length));
const timers = new Timers(clock, () => calls.settled, time);
const mains: unknown[] = [];
let run: Run | null = null;

function begin(order: Order): void {
  if (order.capabilities.length > 0) freezeMembers();
  clock.begin(order.now);
  random.begin(order.seed);
  timers.begin(order.past);
  run = new Run(order, outbox, calls, HEAD.length);
}

/** Starts the program, once the outer side has handed in what its text and its capabilities' are. */
function go(): void {
  for (let i = 0; i < mains.length; i++) {
    if (typeof mains[i] !== "function") return fail(new RealTypeError("the text is no program"));
  }
  const main = shift(mains) as Program;
  run!.know(mains as Program[]);
  void run!.go(main);
}

function settle(answer: Answer & { now: number }): void {
  clock.reach(answer.now);
  calls.settle(answer);
}

function fail(thrown: unknown): void {
  run?.fail(thrown);
}

/** Calls a function of the program's in a task of its own; what it throws ends the run. */
function guarded(call: () => void): void {
  try {
    call();
  } catch (thrown) {
    fail(thrown);
  }
}

/**
 * Does one thing for the outer side and returns a text. `given` is a text, too, but for `main` and
 * `rejected`: these are values of this realm that the outer side has received and not looked at.
 */
export function io(op: string, given: unknown): string {
  switch (op) {
    case "time":
      time.tell(+(given as string));
      return "";
    case "run":
      begin(jsonParse(given as string));
      return "";
    case "main":
      push(mains, given);
      return "";
    case "go":
      go();
      return "";
    case "answer":
      settle(jsonParse(given as string));
      return "";
    case "pause":
      outbox.paused();
      return "";
    case "ring":
      guarded(() => time.ring());
      return "";
    case "rejected":
      fail(given);
      return "";
    case "take":
      return pending.take();
    case "due":
      timers.wake();
      return time.due;
    default:
      return "";
  }
}

/** Replaces V8's own, whose errors would be the outer side's. */
function queueMicrotask(callback: unknown): void {
  if (typeof callback !== "function") throw new RealTypeError("a microtask needs a function");
  soon(() => guarded(() => callback()));
}

// Deno's own call sites are objects of the outer realm, and it reads both names at every error.
defineProperty(RealError, "prepareStackTrace", { value: undefined });
ownSymbols();
setGlobals({ clock, random, timers, outbox }, { queueMicrotask });
