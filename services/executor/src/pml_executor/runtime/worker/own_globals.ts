/** The globals of a run that are ours: its clock, random numbers, timers and console. */
import { type Clock, dateOf, formatBy } from "./clock.ts";
import { consoleOf } from "./console.ts";
import { reduceGlobals } from "./globals.ts";
import type { Outbox } from "./outbox.ts";
import { cryptoOf, type Random, seedMath } from "./random.ts";
import { timerFunctions, type Timers } from "./timers.ts";

/** Sources of the values that a run's globals return. */
export interface Sources {
  clock: Clock;
  random: Random;
  timers: Timers;
  outbox: Outbox;
}

/** Reduces the globals to those kept, these, and `more`. */
export function setGlobals(sources: Sources, more: Record<string, unknown> = {}): void {
  const { clock, random, timers, outbox } = sources;
  seedMath(random);
  formatBy(clock);
  reduceGlobals({
    ...timerFunctions(timers),
    Date: dateOf(clock),
    console: consoleOf((level, message) => outbox.log(level, message)),
    crypto: cryptoOf(random),
    performance: { now: () => clock.sinceStart(), timeOrigin: 0 },
    ...more,
  });
}
