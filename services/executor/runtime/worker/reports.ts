/** What instrumented programs report: the ways decisions go, and the rounds of their loops. */
import { freeze, mapGet, mapSet, RealMap, slice } from "./primordials.ts";

/** Longest outcome; see `pml_executor.domain.protocol`. */
export const MAX_OUTCOME = 200;

/** The names that an instrumented program finds bound; each returns what the author wrote. */
export interface Reports {
  /** A condition, by its truth. */
  decide<T>(node: string, value: T): T;
  /** The left side of `??`, by whether the right one is needed. */
  absent<T>(node: string, value: T): T;
  /** What a logical assignment comes to, after the report on its left side. */
  last<T>(reported: unknown, value: T): T;
  /** The subject of a `switch`: a choice is open. */
  subject<T>(node: string, value: T): T;
  /** The way a `switch` went; said again on falling through, when no choice is open. */
  chosen(node: string, outcome: string): void;
  /** The way a `try` went. */
  took(node: string, outcome: string): void;
  /** A round of a loop begins. */
  round(node: string): void;
}

/** Takes what is reported; `outcome` is null for a round of a loop. */
export interface Heard {
  add(node: string, outcome: string | null): void;
}

export function reportsOf(tally: Heard): Reports {
  // How many choices are open at each switch: a `case` may await, or come back to its own switch.
  const open = new RealMap<string, number>();
  const openAt = (node: string): number => mapGet(open, node) ?? 0;
  const took = (node: string, outcome: string) => tally.add(node, shortened(outcome));

  return {
    decide: freeze((node, value) => {
      tally.add(node, value ? "true" : "false");
      return value;
    }),
    absent: freeze((node, value) => {
      tally.add(node, value === null || value === undefined ? "true" : "false");
      return value;
    }),
    last: freeze((_reported, value) => value),
    subject: freeze((node, value) => {
      mapSet(open, node, openAt(node) + 1);
      return value;
    }),
    chosen: freeze((node, outcome) => {
      if (openAt(node) === 0) return;
      mapSet(open, node, openAt(node) - 1);
      took(node, outcome);
    }),
    took: freeze(took),
    round: freeze((node) => tally.add(node, null)),
  };
}

function shortened(outcome: string): string {
  return outcome.length > MAX_OUTCOME ? slice(outcome, 0, MAX_OUTCOME) : outcome;
}
