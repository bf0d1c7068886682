/**
 * Choice between reports sent one by one and reports that are only counted: a loop of a million
 * rounds must cost neither a message nor a journal entry per round.
 *
 * Only counts decide, so that a replay reports the same: the first reports of a run are sent as
 * they are; after them a count is sent whenever a node's outcome has occurred twice as often as at
 * the last one, and once more when the program ends.
 */
import { mapForEach, mapGet, mapSet, RealMap } from "./primordials.ts";

export const MAX_OF_NODE = 1_000;
export const MAX_OF_RUN = 5_000;

/**
 * `outcome` is null for a round of a loop; `counted` is 0 for a single report; `within` is the call
 * of a capability that it comes from, for a count the last one.
 */
export type Send = (
  node: string,
  outcome: string | null,
  counted: number,
  within: number | null,
) => void;

interface Count {
  seen: number;
  held: number;
  within: number | null;
}

interface Reported {
  alone: number;
  counts: Map<string | null, Count>;
}

export class Tally {
  #send: Send;
  #nodes = new RealMap<string, Reported>();
  #alone = 0;

  constructor(send: Send) {
    this.#send = send;
  }

  add(node: string, outcome: string | null, within: number | null = null): void {
    if (typeof node !== "string") return; // a bug of ours, which should end no run
    let reported = mapGet(this.#nodes, node) as Reported | undefined;
    if (reported === undefined) {
      reported = { alone: 0, counts: new RealMap() };
      mapSet(this.#nodes, node, reported);
    }
    if (reported.alone < MAX_OF_NODE && this.#alone < MAX_OF_RUN) {
      reported.alone++;
      this.#alone++;
      this.#send(node, outcome, 0, within);
    } else {
      this.#count(node, outcome, within, reported.counts);
    }
  }

  /** Sends the pending counts at the program's end. */
  finish(): void {
    mapForEach(this.#nodes, ({ counts }: Reported, node: string) => {
      mapForEach(counts, (count: Count, outcome: string | null) => {
        if (count.held > 0) this.#release(node, outcome, count);
      });
    });
  }

  #count(
    node: string,
    outcome: string | null,
    within: number | null,
    counts: Map<string | null, Count>,
  ): void {
    let count = mapGet(counts, outcome) as Count | undefined;
    if (count === undefined) {
      count = { seen: 0, held: 0, within };
      mapSet(counts, outcome, count);
    }
    count.seen++;
    count.held++;
    count.within = within;
    if ((count.seen & (count.seen - 1)) === 0) this.#release(node, outcome, count);
  }

  #release(node: string, outcome: string | null, count: Count): void {
    const { held, within } = count;
    count.held = 0;
    this.#send(node, outcome, held, within);
  }
}
