/**
 * The language's own objects, frozen before a program runs: a program and the capabilities it calls
 * share them, and what one of them replaced there the other would call.
 */
import {
  create,
  defineProperty,
  freeze,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  ownKeysOf,
  preventExtensions,
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
  defineProperty(owner, name, {
    get: () => value,
    set(this: object, given: unknown) {
      if (this === owner) throw new RealTypeError(`${name} of the language cannot be replaced`);
      const own = { value: given, writable: true, enumerable: true, configurable: true };
      defineProperty(this, name, own);
    },
  });
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

/** What was gone through, and need not be again. */
const known = new RealSet<unknown>([globalThis]);

/** Freezes the language, and these. */
export function freezeIntrinsics(roots: readonly unknown[]): void {
  letAssignAll();
  const named = ownKeysOf(Intl).map((name) =>
    (Intl as unknown as Record<PropertyKey, unknown>)[name]
  );
  freezeAll([...roots, ...named, ...HIDDEN]);
}

/**
 * Freezes these and whatever can be reached from them by properties and prototypes. Every Worker
 * starts with it, in an interpreter: each look that is spared counts a thousand times. So a
 * function that is found under another name than `constructor` is taken for a method, of which
 * nothing else can be reached; constructors that have no other name must be among `roots`.
 */
export function freezeAll(roots: readonly unknown[]): void {
  const list: object[] = [];
  const find = (value: unknown) => {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return;
    if (known.has(value)) return;
    known.add(value);
    list.push(value);
  };
  for (let i = 0; i < roots.length; i++) find(roots[i]);
  for (let i = 0; i < list.length; i++) {
    const object = list[i]!;
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
    if (object === RealError) freezeError(object);
    else freeze(object);
  }
}

/** All but the one switch that V8 reads there, and programs set; it says how much a stack tells. */
function freezeError(error: object): void {
  preventExtensions(error);
  for (const name of ownKeysOf(error)) {
    if (name === "stackTraceLimit") defineProperty(error, name, { configurable: false });
    else defineProperty(error, name, { writable: false, configurable: false });
  }
}
