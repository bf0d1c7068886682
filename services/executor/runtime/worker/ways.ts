/**
 * By which of its calls a function was entered: `via` says it at the call, `entered` asks for it
 * first thing in the function's body. A row is the number that stands for a way.
 */
import { apply, freeze } from "./primordials.ts";

interface Passage {
  key: string;
  row: number;
  entered: boolean;
}

export interface Exits {
  /** `callee`, which is told, whenever it is called, that this is the way. */
  via(row: number, key: string, callee: unknown): unknown;
  /** The row of the call that leads here; `otherwise` when the function was entered by none. */
  entered(key: string, otherwise: number): number;
}

export function waysOf(): Exits {
  let innermost: Passage | null = null; // the call by a known way that is being made right now

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
    // A function that was entered has its row; whatever its body calls comes by another way.
    if (innermost === null || innermost.entered || innermost.key !== key) return otherwise;
    innermost.entered = true;
    return innermost.row;
  };

  return { via: freeze(via), entered: freeze(entered) };
}
