/**
 * The language's own objects, frozen before a program runs: a program and the capabilities it calls
 * share them, and what one of them replaced there the other would call.
 *
 * In two steps, for every Worker starts in an interpreter and pays for each look. Constructors,
 * prototypes and namespaces are frozen in each (`freezeIntrinsics`), so that no built-in can be
 * replaced or added; what hangs on functions, as another `call` on `slice`, could mislead others'
 * code alone: functions are frozen where capabilities are injected (`freezeMembers`).
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
 * What programs assign to objects of their own. An assignment fails where the object inherits a
 * property that cannot be written, so these become accessors that define it on the object. Every
 * name of `Object.prototype`, because a program counts words, too; functions serve as namespaces.
 * Few others: `constructor` of Array, Promise and RegExp as an accessor would cost V8's fast paths.
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

/** What the language is made of but has no name for. */
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

/** What was found so far, and need not be again. */
const known = new RealSet<unknown>([globalThis]);
const found: object[] = [];

function find(value: unknown): void {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return;
  if (known.has(value)) return;
  known.add(value);
  push(found, value);
}

/** Freezes these and the language: constructors, prototypes, namespaces. */
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
 * Freezes what can be reached from these by properties and prototypes, or else from all that was
 * found. A function that is found under another name than `constructor` is taken for a method, of
 * which nothing else can be reached; constructors that have no other name must be among `roots`.
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

/** All but the one switch that V8 reads there, and programs set; it says how much a stack tells. */
function freezeError(error: object): void {
  preventExtensions(error);
  for (const name of ownKeysOf(error)) {
    if (name === "stackTraceLimit") defineProperty(error, name, { configurable: false });
    else defineProperty(error, name, { writable: false, configurable: false });
  }
}
