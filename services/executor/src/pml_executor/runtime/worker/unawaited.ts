/** What a program has begun and waits for nowhere: promises that its text drops, open at its end. */
import { mapDelete, mapForEach, mapSet, promiseThen, push, RealMap } from "./primordials.ts";

/** Maximum number of things that the end of a program names. */
export const MAX_NAMED = 20;

/** A dropped promise by the position of its expression, in the text of `chain` if that is not "". */
export interface Unawaited {
  line: number;
  column: number;
  chain: string;
}

/** The dropped promises of a run that have not settled. */
export class Promised {
  #open = new RealMap<number, Unawaited>();
  #next = 0;
  #count = 0;

  /** Follows a value that the program drops, if it is a promise; a rejection stays unhandled. */
  drop(value: unknown, at: Unawaited): void {
    const number = this.#next++;
    const settled = () => {
      if (mapDelete(this.#open, number)) this.#count--;
    };
    const rejected = (reason: unknown) => {
      settled();
      throw reason;
    };
    try {
      void promiseThen(value as Promise<unknown>, settled, rejected);
      mapSet(this.#open, number, at);
      this.#count++;
    } catch {
      // no promise, or one whose class prevents it
    }
  }

  get any(): boolean {
    return this.#count > 0;
  }

  /** Returns the first open ones. */
  named(): Unawaited[] {
    const named: Unawaited[] = [];
    mapForEach(this.#open, (at: Unawaited) => {
      if (named.length < MAX_NAMED) push(named, at);
    });
    return named;
  }
}
