/**
 * Timers that fire in the same order in every replay: by their due time on the program's clock, one
 * task apart, and only while no call is under way. So a timer never overtakes a call, however long
 * that takes; the gateway enforces a call's timeout.
 */
import type { Clock } from "./clock.ts";
import {
  apply,
  floor,
  mapDelete,
  mapForEach,
  mapSet,
  max,
  RealMap,
  RealTypeError,
} from "./primordials.ts";

const MAX_DELAY = 2 ** 31 - 1;

interface Timer {
  due: number;
  delay: number;
  setAt: number;
  repeat: boolean;
  callback: () => void;
}

/** Real time in milliseconds, from any start, and one call when some of it has passed. */
export interface Alarm {
  now(): number;
  after(ms: number, ring: () => void): void;
}

/** The program's timers; only the first of them waits for real time. */
export class Timers {
  #clock: Clock;
  #quiet: () => boolean;
  #live = new RealMap<number, Timer>();
  #next = 1;
  #armed: Timer | null = null;
  #past = 0;
  #alarm: Alarm;

  /** `quiet` returns whether no call is under way. */
  constructor(clock: Clock, quiet: () => boolean, alarm: Alarm) {
    this.#clock = clock;
    this.#quiet = quiet;
    this.#alarm = alarm;
  }

  /** Timers due before `past` fire without a wait: an earlier executor has waited for them. */
  begin(past: number): void {
    this.#past = past;
  }

  set(repeat: boolean, callback: unknown, delay: unknown, args: unknown[]): number {
    if (typeof callback !== "function") throw new RealTypeError("a timer needs a function");
    const handle = this.#next++;
    const wait = floor(+(delay as number) || 0);
    mapSet(this.#live, handle, {
      ...this.#from(wait > 0 && wait <= MAX_DELAY ? wait : 0),
      repeat,
      callback: () => apply(callback, undefined, args),
    });
    this.wake();
    return handle;
  }

  clear(handle: unknown): void {
    mapDelete(this.#live, handle);
  }

  /** Waits for the timer that is due first; called when all earlier effects are complete. */
  wake(): void {
    const first = this.#first();
    if (first === null || first[1] === this.#armed || !this.#quiet()) return;
    const [handle, timer] = first;
    this.#armed = timer;
    const left = timer.due <= this.#past ? 0 : timer.setAt + timer.delay - this.#alarm.now();
    this.#alarm.after(left, () => this.#fire(handle, timer));
  }

  #fire(handle: number, timer: Timer): void {
    if (this.#armed !== timer) return;
    this.#armed = null;
    if (!this.#quiet() || this.#first()?.[1] !== timer) {
      this.wake();
      return;
    }
    this.#clock.reach(timer.due);
    mapDelete(this.#live, handle);
    if (timer.repeat) mapSet(this.#live, handle, { ...timer, ...this.#from(max(1, timer.delay)) });
    this.wake();
    timer.callback();
  }

  #from(delay: number): Pick<Timer, "due" | "delay" | "setAt"> {
    return { due: this.#clock.after(delay), delay, setAt: this.#alarm.now() };
  }

  #first(): [number, Timer] | null {
    let first: [number, Timer] | null = null;
    mapForEach(this.#live, (timer: Timer, handle: number) => {
      if (first === null || timer.due < first[1].due) first = [handle, timer];
    });
    return first;
  }
}

/** Builds the program's timer functions. */
export function timerFunctions(timers: Timers): Record<string, unknown> {
  const clear = (handle: unknown) => timers.clear(handle);
  return {
    setTimeout: (f: unknown, delay?: unknown, ...args: unknown[]) =>
      timers.set(false, f, delay, args),
    setInterval: (f: unknown, delay?: unknown, ...args: unknown[]) =>
      timers.set(true, f, delay, args),
    clearTimeout: clear,
    clearInterval: clear,
  };
}
