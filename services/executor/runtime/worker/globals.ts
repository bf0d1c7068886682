/** What a program finds in its global scope: the language, a few pure web APIs, nothing else. */
import {
  defineProperty,
  deleteProperty,
  freeze,
  getOwnPropertyDescriptor,
  getOwnPropertyNames,
  getPrototypeOf,
  preventExtensions,
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
 * Names that stay nobody's: Node's modules look for them as they load. Who put them back would get
 * those modules, and by them Workers and whatever else belongs to the process.
 */
const NEVER = ["Atomics", "Deno"];

/** Drops every global that is not kept, then defines `own` ones. */
export function reduceGlobals(own: Record<string, unknown>): void {
  // Deno calls these on ports and events of ours: who replaced one would be handed our port.
  for (const { prototype } of [EventTarget, Event, AbortSignal]) {
    freeze(prototype);
  }
  for (const name of getOwnPropertyNames(globalThis)) {
    if (!KEPT.includes(name)) deleteProperty(globalThis, name);
  }
  for (const name of NEVER) {
    if (name in globalThis) continue;
    defineProperty(globalThis, name, { value: undefined, writable: false, configurable: false });
  }
  for (const name of getOwnPropertyNames(own)) {
    const value = own[name];
    defineProperty(globalThis, name, { value, writable: true, configurable: true });
  }
  for (const name of getOwnPropertyNames(globalThis)) {
    close(getOwnPropertyDescriptor(globalThis, name)?.value);
  }
  for (const hidden of HIDDEN) close(hidden);
}

/** What the language is made of but has no name for. */
const HIDDEN = [
  [][Symbol.iterator](),
  new Map()[Symbol.iterator](),
  new Set()[Symbol.iterator](),
  ""[Symbol.iterator](),
  function* () {},
  (function* () {})(),
  async () => {},
  async function* () {},
  (async function* () {})(),
].map(getPrototypeOf);

/**
 * Takes nothing more on, it and all it inherits from: a program that gives `Object.prototype` a
 * `toJSON` or a proxy trap would speak in the place of others. What is there can still be replaced
 * (freezing would forbid objects properties of the same names); nothing of ours relies on it.
 */
function close(value: unknown): void {
  let object = value;
  while ((typeof object === "object" || typeof object === "function") && object !== null) {
    if (object === globalThis) return;
    preventExtensions(object);
    if (typeof object === "function") {
      const prototype = getOwnPropertyDescriptor(object, "prototype")?.value;
      if (prototype !== undefined && prototype !== object) close(prototype);
    }
    object = getPrototypeOf(object);
  }
}
