/** The program's interface to its tools. */
import {
  create,
  defineProperty,
  freeze,
  functionApply,
  functionBind,
  functionCall,
  includes,
  mapDelete,
  mapForEach,
  mapGet,
  mapSet,
  push,
  RealError,
  RealMap,
  RealPromise,
  RealProxy,
  RealTypeError,
  RealWeakMap,
  setPrototypeOf,
  slice,
  toText,
  weakGet,
  weakSet,
} from "./primordials.ts";
import type { Place } from "./failure.ts";
import { argumentsToJson } from "./json_safe.ts";

/** Sends calls to the executor (`pml_executor.domain.protocol`). */
export interface Bridge {
  call(
    id: number,
    within: number | null,
    node: string | null,
    tool: string,
    args: string,
    place: Place | null,
  ): void;
}

/** The executor's answer to a call. */
export interface Answer {
  id: number;
  ok: boolean;
  value?: unknown;
  message?: string;
}

type Callable = (...args: unknown[]) => unknown;

interface Waiting {
  resolve: (value: unknown) => void;
  reject: (reason: unknown) => void;
  site: Error;
}

/** Calls under way, and the call that each tool error came from. */
export class Calls {
  #bridge: Bridge;
  #placeOf: (site: Error) => Place | null;
  #next = 0;
  #waiting = new RealMap<number, Waiting>();
  #failed = new RealWeakMap<object, number>();
  #open = 0;

  /** `placeOf` returns the position of a call site that the analysis did not find. */
  constructor(bridge: Bridge, placeOf: (site: Error) => Place | null = () => null) {
    this.#bridge = bridge;
    this.#placeOf = placeOf;
  }

  /** Returns the first calls that are not answered, by their numbers. */
  underWay(most: number): number[] {
    const numbers: number[] = [];
    mapForEach(this.#waiting, (_: Waiting, id: number) => {
      if (numbers.length < most) push(numbers, id);
    });
    return numbers;
  }

  /** Whether every call was answered. */
  get settled(): boolean {
    return this.#open === 0;
  }

  /**
   * Makes a call. Never throws: an invalid call rejects its promise. `within` is the call of a
   * capability that makes it.
   */
  make(
    node: string | null,
    tool: unknown,
    given: unknown,
    within: number | null = null,
  ): Promise<unknown> {
    const site = new RealError();
    return new RealPromise((resolve, reject) => {
      if (typeof tool !== "string") throw new RealTypeError("a tool is called by its name");
      const args = argumentsOf(tool, given);
      const id = this.#next++;
      mapSet(this.#waiting, id, { resolve, reject, site });
      this.#open++;
      this.#bridge.call(id, within, node, tool, args, node === null ? this.#placeOf(site) : null);
    });
  }

  settle(answer: Answer): void {
    const waiting = mapGet(this.#waiting, answer.id) as Waiting | undefined;
    if (waiting === undefined) return;
    mapDelete(this.#waiting, answer.id);
    this.#open--;
    if (answer.ok) {
      waiting.resolve(answer.value);
      return;
    }
    const error = waiting.site;
    error.name = "ToolError";
    error.message = toText(answer.message);
    weakSet(this.#failed, error, answer.id);
    waiting.reject(error);
  }

  /** Returns the call that a thrown value came from, if it is a tool's error. */
  origin(thrown: unknown): number | null {
    const id = typeof thrown === "object" && thrown !== null && weakGet(this.#failed, thrown);
    return typeof id === "number" ? id : null;
  }
}

/** Returns the arguments of a call as JSON text. Throws TypeError. */
export function argumentsOf(tool: string, given: unknown): string {
  const args = argumentsToJson(tool, given === undefined ? {} : given);
  if (args[0] === "{") return args;
  throw new RealTypeError(
    `${tool} takes one object with its arguments, not ${slice(args, 0, 100)}`,
  );
}

/** Makes a call at a node, null for a call site not found by the analysis; rejects, never throws. */
export type Make = (node: string | null, tool: unknown, given: unknown) => Promise<unknown>;

/** The objects by which a program makes calls; `at` gives an instrumented call its node. */
export interface Api {
  mcp: object;
  capabilities: object;
  at: (node: string, callee: unknown) => unknown;
}

/** Prefix of the names by which capabilities are called like tools. */
export const CAPABILITY = "cap:";

const converted = freeze(() => "[tool]");

/**
 * The only prototype of tool functions: `null` ends the chain, so that no operator, template,
 * `await`, `in` or `JSON.stringify` reaches code of the program's.
 */
const TOOL = freeze({
  __proto__: null,
  [Symbol.toPrimitive]: converted,
  toString: converted,
  valueOf: converted,
  call: freeze(functionCall),
  apply: freeze(functionApply),
  bind: freeze(functionBind),
});

/** Turns a function into a frozen tool function. */
function asTool(name: string, invoke: Callable): Callable {
  defineProperty(invoke, "name", { value: name });
  return freeze(setPrototypeOf(invoke, TOOL));
}

/** Builds the frozen interface by which calls are made. */
export function apiOf(make: Make): Api {
  // The tool of each function given to the program; null for the one that takes a tool's name.
  const tools = new RealWeakMap<Callable, string | null>();

  const toolFunction = (tool: string): Callable => {
    const invoke = asTool(tool, (args: unknown) => make(null, tool, args));
    weakSet(tools, invoke, tool);
    return invoke;
  };
  const callByName = asTool("call", (tool: unknown, args: unknown) => make(null, tool, args));
  weakSet(tools, callByName, null);

  const at = (node: string, callee: unknown): unknown => {
    if (typeof callee !== "function") return callee;
    const tool = weakGet(tools, callee) as string | null | undefined;
    if (tool === undefined) return callee;
    // Called in place and never kept by the program, so they need not be tool functions.
    if (tool === null) return (name: unknown, args: unknown) => make(node, name, args);
    return (args: unknown) => make(node, tool, args);
  };

  const serverOf = (server: string) => names((tool) => toolFunction(`${server}:${tool}`));
  return freeze({
    mcp: names((name) => (name === "call" ? callByName : serverOf(name))),
    capabilities: names((name) => toolFunction(`${CAPABILITY}${name}`)),
    at: freeze(at),
  });
}

/**
 * Names that the language itself looks up to await, print or convert an object; the analysis refuses
 * them as members (pml_analysis/syntax/member_names.py).
 */
const LANGUAGE = ["then", "toString", "valueOf", "toJSON"];

/** Builds a frozen object that has every name but those of the language. */
function names(make: (name: string) => object): object {
  const made = new RealMap<string, object>();
  const refuse = () => {
    throw new RealTypeError("this object cannot be changed");
  };
  const known = (name: unknown) => typeof name === "string" && !includes(LANGUAGE, name);
  // Without a prototype, so that the program cannot define a trap that is missing here.
  const traps: ProxyHandler<object> & { __proto__: null } = {
    __proto__: null,
    get(_target, name) {
      if (!known(name)) return undefined;
      let value = mapGet(made, name) as object | undefined;
      if (value === undefined) mapSet(made, name, value = make(name as string));
      return value;
    },
    has: (_target, name) => known(name),
    set: refuse,
    defineProperty: refuse,
    deleteProperty: refuse,
    setPrototypeOf: refuse,
  };
  return new RealProxy(create(null), freeze(traps));
}
