/**
 * The program's clock: a function of the journal, so that a replay reads the same times. It starts
 * at the run's first journal entry, jumps to the journal's time of each answer when that is
 * delivered and to the due time of a timer when that fires, and advances by one millisecond
 * whenever it is read (so a loop that waits for time to pass ends).
 */
import {
  apply,
  construct,
  defineProperty,
  freeze,
  getOwnPropertyDescriptor,
  max,
  RealDate,
  RealWeakMap,
  weakGet,
  weakSet,
} from "./primordials.ts";

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

/** Lets `Intl.DateTimeFormat` format the current time by `clock` where it is given none. */
export function formatBy(clock: Clock): void {
  const prototype = Intl.DateTimeFormat.prototype;
  const orNow = (date: unknown) => date === undefined ? clock.read() : date;
  const formatOf = getOwnPropertyDescriptor(prototype, "format")!.get!;
  const toParts = prototype.formatToParts;
  const made = new RealWeakMap<object, (date?: unknown) => string>();
  const own = {
    get format() {
      const real = apply(formatOf, this, []);
      let format = weakGet(made, this);
      if (format === undefined) {
        format = freeze((date?: unknown): string => real(orNow(date)));
        weakSet(made, this, format);
      }
      return format;
    },
    formatToParts(date?: unknown) {
      return apply(toParts, this, [orNow(date)]);
    },
  };
  for (const name of ["format", "formatToParts"] as const) {
    const found = getOwnPropertyDescriptor(own, name)!;
    defineProperty(prototype, name, { ...found, enumerable: false });
  }
}
