/** The program's global scope: the language and a few pure web APIs, nothing else. */
import { freezeIntrinsics, freezeMembers } from "./intrinsics.ts";
import {
  apply,
  defineProperty,
  deleteProperty,
  freeze,
  getOwnPropertyDescriptor,
  getOwnPropertyNames,
} from "./primordials.ts";

const KEPT = freeze(
  [
    // the language; WebAssembly, shared memory, weak references and Temporal are left out: memory
    // that no limit covers, blocking waits, and views of collection and of time that do not repeat
    "Object Function Array Number parseFloat parseInt Infinity NaN undefined Boolean String Symbol",
    "Date Promise RegExp Error AggregateError EvalError RangeError ReferenceError SyntaxError",
    "TypeError URIError SuppressedError DisposableStack AsyncDisposableStack globalThis JSON Math",
    "Intl ArrayBuffer DataView Uint8Array Int8Array Uint16Array Int16Array Uint32Array Int32Array",
    "BigUint64Array BigInt64Array Uint8ClampedArray Float16Array Float32Array Float64Array Map BigInt",
    "Set Iterator WeakMap WeakSet Proxy Reflect decodeURI decodeURIComponent encodeURI",
    "encodeURIComponent escape unescape eval isFinite isNaN",
    // pure web APIs
    "AbortController AbortSignal DOMException Event EventTarget TextDecoder TextEncoder URL",
    "URLSearchParams atob btoa queueMicrotask structuredClone",
  ].join(" ").split(" "),
);

/**
 * Names that programs cannot define: Node's modules look them up as they load. A program that
 * restored them would get those modules, and with them Workers and the process's other resources.
 */
const NEVER = ["Atomics", "Deno"];

/** Programs have another one bound; Node's modules, where they load, define names on it. */
const REPLACEABLE = ["console"];

/**
 * Deletes every global that is not in KEPT, defines those of `own`, and freezes them and the
 * language. New names can be added to the global object; existing ones cannot be replaced.
 */
export function reduceGlobals(own: Record<string, unknown>): void {
  for (const name of getOwnPropertyNames(globalThis)) {
    if (!KEPT.includes(name)) deleteProperty(globalThis, name);
  }
  deleteProperty(Date.prototype, "toTemporalInstant"); // it leads to Temporal without its name
  for (const name of NEVER) {
    if (!(name in globalThis)) define(name, undefined);
  }
  const values: unknown[] = [];
  for (const name of KEPT) {
    const found = getOwnPropertyDescriptor(globalThis, name);
    if (found === undefined || name in own) continue;
    if (found.get === undefined) values.push(define(name, found.value));
    else defineLater(name, found.get);
  }
  for (const name of getOwnPropertyNames(own)) {
    values.push(define(name, own[name], REPLACEABLE.includes(name)));
  }
  freezeIntrinsics(values);
}

function define(name: string, value: unknown, writable = false): unknown {
  defineProperty(globalThis, name, { value, writable, configurable: writable });
  return value;
}

/** Defines a global that Deno loads at its first use; many programs never use it. */
function defineLater(name: string, load: () => unknown): void {
  let loaded: unknown;
  const get = () => {
    if (loaded === undefined) freezeMembers([loaded = apply(load, globalThis, [])]);
    return loaded;
  };
  defineProperty(globalThis, name, { get: freeze(get), configurable: false });
}
