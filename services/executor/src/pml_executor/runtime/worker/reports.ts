/** Reports of instrumented programs: outcomes of decisions, and rounds of loops. */
import { freeze, mapGet, mapSet, RealMap, slice } from "./primordials.ts";

/** Longest outcome; see `pml_executor.domain.protocol`. */
export const MAX_OUTCOME = 200;

/** Functions bound in an instrumented program; each returns the value of the author's text. */
export interface Reports {
  /** A condition, by its truth. */
  decide<T>(node: string, value: T): T;
  /** The left side of `??`, by whether the right one is needed. */
  absent<T>(node: string, value: T): T;
  /** The value of a logical assignment, after the report on its left side. */
  last<T>(reported: unknown, value: T): T;
  /** The subject of a `switch`, which opens a choice. */
  subject<T>(node: string, value: T): T;
  /** The outcome of a `switch`; called again on falling through, when no choice is open. */
  chosen(node: string, outcome: string): void;
  /** The outcome of a `try`. */
  took(node: string, outcome: string): void;
  /** The start of a round of a loop. */
  round(node: string): void;
}

/** Receives reports; `outcome` is null for a round of a loop. */
export interface ReportSink {
  add(node: string, outcome: string | null): void;
}

export function reportsOf(tally: ReportSink): Reports {
  // Number of open choices at each switch: a `case` may await, or re-enter its own switch.
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
