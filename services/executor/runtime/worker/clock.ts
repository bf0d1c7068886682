/**
 * Time as a program sees it: a function of the journal, so that a replay sees the same.
 * It starts at the run's first journal entry, jumps to the journal's time of each answer when that
 * is delivered to its due time when a timer fires, and advances by one millisecond whenever it
 * is read (a loop that waits for it to pass therefore ends).
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
