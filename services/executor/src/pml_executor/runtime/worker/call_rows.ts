/**
 * Tracks the call site by which a function is entered: `via` sets it at the call, `entered` reads
 * it at the start of the function's body. A row is the number of a call site.
 */
import { apply, freeze } from "./primordials.ts";

interface Passage {
  key: string;
  row: number;
  entered: boolean;
}

export interface CallRows {
  /** Wraps `callee` so that each of its calls has this row. */
  via(row: number, key: string, callee: unknown): unknown;
  /** Returns the row of the call that entered the function; `otherwise` if there is none. */
  entered(key: string, otherwise: number): number;
}

export function callRowsOf(): CallRows {
  let innermost: Passage | null = null; // the tracked call that is being made

  const via = (row: number, key: string, callee: unknown): unknown => {
    if (typeof callee !== "function") return callee; // the call fails by itself, as the author's
    return function (this: unknown, ...args: unknown[]): unknown {
      const outer = innermost;
      innermost = { key, row, entered: false };
      try {
        return apply(callee, this, args);
      } finally {
        innermost = outer;
      }
    };
  };

  const entered = (key: string, otherwise: number): number => {
    // Once a function has taken its row, calls in its body do not have that row.
    if (innermost === null || innermost.entered || innermost.key !== key) return otherwise;
    innermost.entered = true;
    return innermost.row;
  };

  return { via: freeze(via), entered: freeze(entered) };
}
