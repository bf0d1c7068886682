/**
 * The language's own objects, frozen before a program runs: a program and the capabilities it calls
 * share them, and would call each other's replacements.
 *
 * In two steps, since every Worker starts in an interpreter, where each property access costs.
 * Constructors, prototypes and namespaces are frozen in each (`freezeIntrinsics`), so that no
 * built-in can be replaced or added; properties of functions, such as another `call` on `slice`,
 * could mislead only others' code: functions are frozen where capabilities are injected
 * (`freezeMembers`).
 */
import {
  create,
  defineProperty,
  freeze,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  ownKeysOf,
  preventExtensions,
  push,
  RealError,
  RealSet,
  RealTypeError,
} from "./primordials.ts";

/**
 * Allows assignments of inherited names on a program's own objects. An assignment fails where the
 * object inherits a property that cannot be written, so these become accessors that define it on
 * the object. That covers every name of `Object.prototype`, because programs also count words, and
 * of functions, which serve as namespaces. Few others: `constructor` of Array, Promise and RegExp
 * as an accessor would cost V8's fast paths.
 */
function letAssignAll(): void {
  for (const name of ownKeysOf(Object.prototype)) letAssign(Object.prototype, name);
  for (const name of ownKeysOf(Function.prototype)) letAssign(Function.prototype, name);
  for (const name of ownKeysOf(RealError.prototype)) letAssign(RealError.prototype, name);
  for (const { prototype } of ERRORS) {
    letAssign(prototype, "name");
    letAssign(prototype, "message");
    letAssign(prototype, "constructor");
  }
  for (const { prototype } of [Array, Date, Map, Set, RegExp]) letAssign(prototype, "toString");
  letAssign(Date.prototype, "toJSON");
  letAssign(Date.prototype, "valueOf");
}

const ERRORS = [
  ...[AggregateError, EvalError, RangeError, ReferenceError, SuppressedError, SyntaxError],
  ...[RealTypeError, URIError],
];

function letAssign(owner: object, name: PropertyKey): void {
  const found = getOwnPropertyDescriptor(owner, name);
  if (typeof name !== "string" || !found?.writable || !found.configurable) return;
  const value = found.value;
  if (name !== "constructor") freeze(value);
  const { set } = {
    set(this: object, given: unknown) {
      if (this === owner) throw new RealTypeError(`${name} of the language cannot be replaced`);
      const own = { value: given, writable: true, enumerable: true, configurable: true };
      defineProperty(this, name, own);
    },
  };
  defineProperty(owner, name, { get: freeze(() => value), set: freeze(set) });
}

/** Prototypes of the language that have no global name. */
const HIDDEN = [
  [][Symbol.iterator](),
  new Map()[Symbol.iterator](),
  new Set()[Symbol.iterator](),
  ""[Symbol.iterator](),
  ""[Symbol.iterator]().map((part) => part),
  Iterator.from(create(null)),
  /a/[Symbol.matchAll](""),
  function* () {},
  (function* () {})(),
  async () => {},
  async function* () {},
  (async function* () {})(),
].map(getPrototypeOf);

/** Objects found so far. */
const known = new RealSet<unknown>([globalThis]);
const found: object[] = [];

function find(value: unknown): void {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return;
  if (known.has(value)) return;
  known.add(value);
  push(found, value);
}

/** Freezes the roots and the language: constructors, prototypes, namespaces. */
export function freezeIntrinsics(roots: readonly unknown[]): void {
  letAssignAll();
  for (let i = 0; i < roots.length; i++) find(roots[i]);
  for (const name of ownKeysOf(Intl)) find((Intl as unknown as Record<PropertyKey, unknown>)[name]);
  for (let i = 0; i < HIDDEN.length; i++) find(HIDDEN[i]);
  for (let i = 0; i < found.length; i++) {
    const object = found[i]!;
    find(getPrototypeOf(object));
    if (typeof object === "function") find(object.prototype);
    else find(getOwnPropertyDescriptor(object, "constructor")?.value);
    shut(object);
  }
}

/**
 * Freezes all that can be reached by properties and prototypes from the roots or, without any, from
 * everything found so far. A function under another name than `constructor` is treated as a method,
 * from which nothing else can be reached; constructors without another name must be in `roots`.
 */
export function freezeMembers(roots: readonly unknown[] = []): void {
  const first = roots.length === 0 ? 0 : found.length;
  for (let i = 0; i < roots.length; i++) find(roots[i]);
  for (let i = first; i < found.length; i++) {
    const object = found[i]!;
    find(getPrototypeOf(object));
    const names = ownKeysOf(object);
    for (let j = 0; j < names.length; j++) {
      const member = getOwnPropertyDescriptor(object, names[j]!)!;
      const value = member.value;
      if (typeof value === "function") {
        if (names[j] === "constructor") find(value);
        else freeze(value);
      } else if (typeof value === "object") find(value);
      else if (value === undefined) {
        freeze(member.get);
        freeze(member.set);
      }
    }
    shut(object);
  }
}

function shut(object: object): void {
  if (object === RealError) freezeError(object);
  else freeze(object);
}

/** Freezes all but `stackTraceLimit`, which V8 reads there and programs set. */
function freezeError(error: object): void {
  preventExtensions(error);
  for (const name of ownKeysOf(error)) {
    if (name === "stackTraceLimit") defineProperty(error, name, { configurable: false });
    else defineProperty(error, name, { writable: false, configurable: false });
  }
}
