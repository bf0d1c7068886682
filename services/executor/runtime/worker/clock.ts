/**
 * The program's clock: a function of the journal, so that a replay reads the same times. It starts
 * at the run's first journal entry, jumps to the journal's time of each answer when that is
 * delivered and to the due time of a timer when that fires, and advances by one millisecond
 * whenever it is read (so a loop that waits for time to pass ends).
 */
import { construct, defineProperty, max, RealDate } from "./primordials.ts";

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

/** Builds a Date constructor with `clock` as its only source of the current time. */
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
