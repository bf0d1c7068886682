/**
 * Time as a program sees it: a function of the journal, so that a replay sees the same.
 * It starts at the run's first journal entry, jumps to the journal's time of each answer when that
 * is delivered and to its due time when a timer fires, and advances by one millisecond whenever it
 * is read (a loop that waits for it to pass therefore ends).
 */
import {
  abortAfter,
  addListener,
  apply,
  construct,
  defineProperty,
  floor,
  mapDelete,
  mapGet,
  mapSet,
  max,
  RealDate,
  RealMap,
  RealTypeError,
} from "./primordials.ts";

const MAX_DELAY = 2 ** 31 - 1;

export class Clock {
  #now = 0;
  #start = 0;

  begin(now: number): void {
    this.#now = this.#start = now;
  }

  reach(now: number): void {
    this.#now = max(this.#now, now);
  }

  read(): number {
    return this.#now++;
  }

  sinceStart(): number {
    return this.read() - this.#start;
  }

  after(delay: number): number {
    return this.#now + delay;
  }
}

/** The Date constructor with `clock` as its only source of now. */
export function dateOf(clock: Clock): DateConstructor {
  // deno-lint-ignore no-explicit-any
  function ProgramDate(...parts: any[]) {
    if (new.target === undefined) return new RealDate(clock.read()).toString();
    return construct(RealDate, parts.length === 0 ? [clock.read()] : parts, new.target);
  }
  const date = ProgramDate as unknown as DateConstructor;
  const hidden = { writable: true, configurable: true };
  defineProperty(date, "name", { value: "Date", configurable: true });
  defineProperty(date, "length", { value: 7, configurable: true });
  defineProperty(date, "prototype", { value: RealDate.prototype, writable: false });
  defineProperty(date, "now", { value: () => clock.read(), ...hidden });
  defineProperty(date, "parse", { value: RealDate.parse, ...hidden });
  defineProperty(date, "UTC", { value: RealDate.UTC, ...hidden });
  defineProperty(RealDate.prototype, "constructor", { value: date, ...hidden });
  return date;
}

type Timer = (callback: unknown, delay?: number, ...args: unknown[]) => number;

/**
 * Timers that move `clock` to the time they were due; a handle is a number from 1. They stand on
 * AbortSignal, since the runtime's own timers load 9 ms of Node's, and need globals we drop.
 */
export function timersOf(clock: Clock): Record<string, unknown> {
  const live = new RealMap<unknown, unknown>();
  let next = 1;

  const set = (repeat: boolean): Timer => (callback, delay = 0, ...args) => {
    if (typeof callback !== "function") throw new RealTypeError("a timer needs a function");
    const handle = next++;
    // Delays that no timer can have count as none.
    const wait = delay > 0 && delay <= MAX_DELAY ? floor(delay) : 0;
    const arm = () => {
      const due = clock.after(wait);
      const alarm = abortAfter(wait);
      mapSet(live, handle, alarm);
      addListener(alarm, "abort", () => {
        if (mapGet(live, handle) !== alarm) return;
        clock.reach(due);
        if (repeat) arm();
        else mapDelete(live, handle);
        apply(callback, undefined, args);
      });
    };
    arm();
    return handle;
  };
  const clear = (handle: unknown): void => void mapDelete(live, handle);
  return {
    setTimeout: set(false),
    setInterval: set(true),
    clearTimeout: clear,
    clearInterval: clear,
  };
}
