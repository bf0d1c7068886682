/** The part of a tool's result that a program returned and that was not there. */

/** A part by the node of the call and the path into its result, with the author's text and place. */
export interface ReturnedPart {
  node: string;
  path: (string | number | null)[];
  text: string;
  line: number;
  column: number;
}

/** Remembers the last part that was undefined where the program returned it. */
export class ReturnedParts {
  #last: ReturnedPart | null = null;

  /** Takes note of a part, by its value; returns the value. */
  note<T>(part: ReturnedPart, value: T): T {
    if (value === undefined) this.#last = part;
    return value;
  }

  /** Returns the part that gave the program's value; null where none did. */
  of(value: unknown): ReturnedPart | null {
    return value === undefined ? this.#last : null;
  }
}
