/** One run: what is bound in a program and its capabilities, and how its end is reported. */
import { callRowsOf } from "./call_rows.ts";
import { type Caller, Capabilities, PROGRAM, type Program } from "./capabilities.ts";
import { consoleOf } from "./console.ts";
import { describe } from "./failure.ts";
import type { Outbox } from "./outbox.ts";
import { apply, freeze } from "./primordials.ts";
import { reportsOf } from "./reports.ts";
import { ReturnedParts } from "./returned_parts.ts";
import { apiOf, type Calls } from "./tools.ts";
import { MAX_NAMED, Promised } from "./unawaited.ts";

/** A capability that the program may call by any name in `called_as`. */
export interface Injected {
  name: string;
  called_as: string[];
  code: string;
}

/**
 * The order to run a program; `seed` is 32 hexadecimal digits, `now` and `past` are milliseconds:
 * the run's start, and the last entry of an earlier executor.
 */
export interface Order {
  kind: "run";
  code: string;
  capabilities: Injected[];
  args: unknown;
  seed: string;
  now: number;
  past: number;
}

/** Maximum number of microtasks in which dropped promises may settle that wait for no outcome. */
const LAST_TURNS = 100;

/** Runs one program; `prelude` is the length of the text before it on its first line. */
export class Run {
  #order: Order;
  #outbox: Outbox;
  #capabilities: Capabilities;
  #prelude: number;
  #calls: Calls;
  #promised = new Promised();
  #parts = new ReturnedParts();

  constructor(order: Order, outbox: Outbox, calls: Calls, prelude: number) {
    this.#order = order;
    this.#outbox = outbox;
    this.#prelude = prelude;
    this.#calls = calls;
    const bind = (caller: Caller, args: unknown) => this.#bound(caller, args);
    this.#capabilities = new Capabilities(outbox, calls, bind, prelude);
  }

  /** Registers the order's capabilities; `mains` are their functions, in the same order. */
  know(mains: readonly Program[]): void {
    const { capabilities } = this.#order;
    for (let number = 0; number < capabilities.length; number++) {
      const { name, called_as } = capabilities[number]!;
      const capability = { number, name, main: mains[number]! };
      for (let i = 0; i < called_as.length; i++) this.#capabilities.know(called_as[i]!, capability);
    }
  }

  /** Runs the program to its end and reports that. */
  async go(main: Program): Promise<void> {
    try {
      const value = await apply(main, undefined, this.#bound(PROGRAM, this.#order.args));
      for (let turn = 0; turn < LAST_TURNS && this.#promised.any; turn++) await undefined;
      const open = this.#calls.underWay(MAX_NAMED);
      this.#outbox.returned(value, open, this.#promised.named(), this.#parts.of(value));
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  /** Reports a value that the program has thrown, as its end. */
  fail(thrown: unknown): void {
    const failure = describe(thrown, this.#prelude);
    this.#outbox.threw(failure, "run", this.#capabilities.origin(thrown));
  }

  /** Returns the values bound in the program, or in one call of a capability. */
  #bound(caller: Caller, args: unknown): unknown[] {
    const { mcp, capabilities, at } = apiOf(this.#capabilities.madeBy(caller));
    const reports = reportsOf({
      add: (node, outcome) =>
        this.#outbox.tally.add(caller.id === null ? node : caller.path + node, outcome, caller.id),
    });
    const console = consoleOf((level, message) => this.#outbox.log(level, message, caller.id));
    const dropped = freeze((line: number, column: number, value: unknown): unknown => {
      this.#promised.drop(value, { line, column, chain: caller.chain });
      return value;
    });
    const returned = freeze((
      node: string,
      path: (string | number | null)[],
      text: string,
      line: number,
      column: number,
      value: unknown,
    ): unknown =>
      // A capability's value is its caller's, who sees for itself that it is null.
      caller.id === null ? this.#parts.note({ node, path, text, line, column }, value) : value
    );
    const __pml = freeze({ at, dropped, returned, ...reports, ...callRowsOf() });
    return [mcp, capabilities, args, args, console, __pml];
  }
}
