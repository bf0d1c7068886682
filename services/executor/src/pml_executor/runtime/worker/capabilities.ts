/**
 * Capabilities are functions of the Worker whose program calls them: called directly, each
 * call with an interface of its own, bound to its depth and its caller. So concurrent calls cannot
 * be mixed up, and no program can access the depth. Arguments and results are copied as JSON, so
 * that neither side holds an object of the other's.
 */
import { describe } from "./failure.ts";
import { toJson } from "./json_safe.ts";
import { LostParts } from "./lost.ts";
import type { Outbox, Source } from "./outbox.ts";
import {
  apply,
  includes,
  jsonParse,
  mapGet,
  mapSet,
  promiseThen,
  RealError,
  RealMap,
  RealPromise,
  RealTypeError,
  RealWeakMap,
  slice,
  startsWith,
  weakGet,
  weakSet,
} from "./primordials.ts";
import { argumentsOf, type Calls, CAPABILITY, type Make } from "./tools.ts";

/** Maximum nesting of calls of capabilities. */
export const DEEPEST = 3;

export type Program = (...bound: unknown[]) => Promise<unknown>;

/** One capability; `number` is its index among those that the run was given. */
export interface Capability {
  number: number;
  name: string;
  main: Program;
}

/**
 * The program, or one call of a capability, whose number is `id`. `path` prefixes the ids of its
 * nodes, `chain` names it and its callers.
 */
export interface Caller {
  id: number | null;
  depth: number;
  path: string;
  chain: string;
}

export const PROGRAM: Caller = { id: null, depth: 0, path: "", chain: "" };

/** Returns the values of the names bound in a program (NAMES in main.ts). */
export type Bind = (caller: Caller, args: unknown) => unknown[];

const OWN_NAMES = ["", "Error", "ToolError", "CapabilityError"];

export class Capabilities {
  #outbox: Outbox;
  #calls: Calls;
  #bind: Bind;
  #prelude: number;
  #known = new RealMap<string, Capability>();
  #failed = new RealWeakMap<object, number>();
  #next = 0;

  /** `prelude` is the length of the text before a program on its first line. */
  constructor(outbox: Outbox, calls: Calls, bind: Bind, prelude: number) {
    this.#outbox = outbox;
    this.#calls = calls;
    this.#bind = bind;
    this.#prelude = prelude;
  }

  /** Registers a capability under a name. */
  know(name: string, capability: Capability): void {
    mapSet(this.#known, name, capability);
  }

  /** Returns the function by which a caller calls capabilities and tools. */
  madeBy(caller: Caller): Make {
    return (node, tool, given) => {
      if (typeof tool !== "string") return this.#calls.make(null, tool, given);
      const inside = node === null && caller.id !== null ? `dyn:${tool}` : node;
      const at = inside === null ? null : `${caller.path}${inside}`;
      if (startsWith(tool, CAPABILITY)) {
        const name = slice(tool, CAPABILITY.length);
        const called = mapGet(this.#known, name) as Capability | undefined;
        if (caller.depth >= DEEPEST) return tooDeep(caller, called?.name ?? name);
        if (called !== undefined) return this.#invoke(caller, at ?? `dyn:${tool}`, called, given);
      }
      return this.#calls.make(at, tool, given, caller.id);
    };
  }

  /** Returns the calls that a thrown value is the error of. */
  origin(thrown: unknown): Source {
    const id = typeof thrown === "object" && thrown !== null && weakGet(this.#failed, thrown);
    return { call: this.#calls.origin(thrown), capability: typeof id === "number" ? id : null };
  }

  #invoke(
    caller: Caller,
    node: string,
    called: Capability,
    given: unknown,
  ): Promise<unknown> {
    const site = new RealError(); // made here, where its stack has the position of the call
    return new RealPromise((resolve, reject) => {
      const args = argumentsOf(`capability ${called.name}`, given);
      const id = this.#next++;
      const inner = {
        id,
        depth: caller.depth + 1,
        path: `${node}/`,
        chain: caller.chain === "" ? called.name : `${caller.chain} → ${called.name}`,
      };
      this.#outbox.entered(id, caller.id, node, called.number, args);
      const fail = (thrown: unknown) => {
        const failure = describe(thrown, this.#prelude);
        this.#outbox.failed(id, failure, this.origin(thrown));
        const { name, message, line } = failure;
        const kind = includes(OWN_NAMES, name) ? "" : `${name}: `;
        site.name = "CapabilityError";
        site.message = `${called.name}${line === null ? "" : `, line ${line}`}: ${kind}${message}`;
        weakSet(this.#failed, site, id);
        reject(site);
      };
      const succeed = (value: unknown) => {
        const lost = new LostParts("result");
        let text: string;
        try {
          text = toJson(value, lost.add, "result");
        } catch (thrown) {
          return fail(thrown);
        }
        this.#outbox.left(id, text, lost);
        resolve(jsonParse(text));
      };
      const bound = this.#bind(inner, jsonParse(args));
      promiseThen(apply(called.main, undefined, bound), succeed, fail);
    });
  }
}

function tooDeep(caller: Caller, name: string): Promise<never> {
  const error = new RealTypeError(
    `${name} cannot be called here: capabilities call one another at most ${DEEPEST} deep, ` +
      `and this is ${caller.chain}`,
  );
  return new RealPromise((_resolve, reject) => reject(error));
}
