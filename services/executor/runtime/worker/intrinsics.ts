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
  hasOwn,
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
function assignable(): [owner: object, names: readonly PropertyKey[]][] {
  const errors = [
    ...[RealError, AggregateError, EvalError, RangeError, ReferenceError, SuppressedError],
    ...[SyntaxError, TypeError, URIError],
  ];
  return [
    [Object.prototype, ownKeysOf(Object.prototype)],
    [Function.prototype, ownKeysOf(Function.prototype)],
    ...errors.map(({ prototype }): [object, PropertyKey[]] => [prototype, ownKeysOf(prototype)]),
    [Array.prototype, ["toString"]],
    [Date.prototype, ["toString", "toJSON", "valueOf"]],
    [Map.prototype, ["toString"]],
    [Set.prototype, ["toString"]],
    [RegExp.prototype, ["toString"]],
  ];
}

function letAssign(owner: object, name: PropertyKey): void {
  const found = getOwnPropertyDescriptor(owner, name);
  if (typeof name !== "string" || !found?.writable || !found.configurable) return;
  const { value, enumerable } = found;
  const accessor = {
    get: () => value,
    set(this: object, given: unknown) {
      if (this === owner) throw new RealTypeError(`${name} of the language cannot be replaced`);
      const own = { value: given, writable: true, enumerable: true, configurable: true };
      defineProperty(this, name, own);
    },
  };
  defineProperty(owner, name, { ...accessor, enumerable });
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
  for (const [owner, names] of assignable()) for (const name of names) letAssign(owner, name);
  freezeAll([...roots, ...HIDDEN]);
}

/** Freezes these, and whatever can be reached from them by properties and prototypes. */
export function freezeAll(roots: readonly unknown[]): void {
  const list: object[] = [];
  const find = (value: unknown) => {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return;
    if (known.has(value)) return;
    known.add(value);
    list.push(value as object);
  };
  const findMember = (value: unknown) => {
    // Four in five: a method or an accessor, of which nothing else can be reached.
    if (typeof value === "function" && !hasOwn(value, "prototype")) freeze(value);
    else find(value);
  };
  for (let i = 0; i < roots.length; i++) find(roots[i]);
  for (let i = 0; i < list.length; i++) {
    const object = list[i]!;
    find(getPrototypeOf(object));
    const names = ownKeysOf(object);
    for (let j = 0; j < names.length; j++) {
      const member = getOwnPropertyDescriptor(object, names[j]!)!;
      if (member.value !== undefined) findMember(member.value);
      else {
        findMember(member.get);
        findMember(member.set);
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
