/**
 * Values as JSON text, the only form in which they leave the program.
 *
 * As JSON.stringify writes them, but for what that refuses or empties: a BigInt becomes its digits;
 * a URL and a RegExp their text; a Map an object or a list of pairs; a Set and a typed array a list;
 * an Error its name and message; a circular reference "[Circular]". What is lost is reported by its
 * path: NaN and the infinities, functions and symbols, `undefined` in a list, lone surrogates,
 * objects whose contents no field shows, numbers that are not JavaScript's. A promise, and nesting
 * deeper than `MAX_DEPTH`, are errors.
 *
 * A `toJSON` of a class or of the object itself is called; one that every object would inherit is
 * not. A person approves the contents of an object literal, so arguments of calls may have none of
 * their own.
 */
import {
  apply,
  arrayPrototype,
  bigintText,
  booleanOf,
  charCodeAt,
  contains,
  dateTime,
  dateToJson,
  exec,
  getOwnPropertyDescriptor,
  getOwnPropertyNames,
  getPrototypeOf,
  includes,
  isArray,
  isoText,
  isRawJson,
  isView,
  jsonParse,
  jsonStringify,
  keysOf,
  mapForEach,
  numberOf,
  objectPrototype,
  objectText,
  pop,
  push,
  RealBoolean,
  RealDataView,
  RealDate,
  RealError,
  RealMap,
  RealNumber,
  RealPromise,
  RealRangeError,
  RealRegExp,
  RealSet,
  RealString,
  RealTypeError,
  setForEach,
  slice,
  stringOf,
  toText,
  viewLength,
} from "./primordials.ts";
import { type OnLost, type PathKey, pathOf, refusing } from "./lost.ts";
import { textOfUrl } from "./web.ts";

export const MAX_DEPTH = 100;

/** One text that is written: the containers and keys that lead to the present value. */
interface Writing {
  root: string;
  ancestors: unknown[];
  keys: PathKey[];
  lost: OnLost;
  isStrict: boolean;
}

/**
 * Returns the JSON text of `value`, `root` in errors; "null" where JSON has none. What is lost is
 * given to `lost`. Throws RangeError if nested too deep, TypeError for a promise.
 */
export function toJson(value: unknown, lost: OnLost = ignoreLost, root = "the value"): string {
  const w = { root, ancestors: [], keys: [], lost, isStrict: false };
  return write(w, value, null) ?? "null";
}

/** Returns the JSON text of the arguments of a call. Throws TypeError for whatever it would lose. */
export function argumentsToJson(tool: string, value: unknown): string {
  const w = { root: "args", ancestors: [], keys: [], lost: refusing(tool), isStrict: true };
  return write(w, value, null) ?? "null";
}

function ignoreLost(): void {}

/** Returns the text; undefined for values that objects leave out. */
function write(w: Writing, value: unknown, key: PathKey | null): string | undefined {
  switch (typeof value) {
    case "string":
      return ofText(w, value, key);
    case "bigint":
      return quoted(bigintText(value));
    case "number":
      if (value - value !== 0) report(w, key, toText(value), "null");
      return jsonStringify(value);
    case "boolean":
      return jsonStringify(value);
    case "object":
      return value === null ? "null" : ofObject(w, value, key);
    case "undefined":
      if (typeof key === "number") report(w, key, "undefined", "null");
      return undefined;
    default: {
      const isMember = typeof key === "string";
      report(w, key, `a ${typeof value}`, isMember ? null : "null");
      return undefined;
    }
  }
}

function report(w: Writing, key: PathKey | null, found: string, instead: string | null): void {
  w.lost({ keys: w.keys, key }, found, instead);
}

function ofText(w: Writing, text: string, key: PathKey | null): string {
  const written = jsonStringify(text);
  const whole = wellFormed(written);
  if (whole !== written) {
    report(w, key, "text with half of a surrogate pair", "text with U+FFFD in its place");
  }
  return whole;
}

function ofObject(w: Writing, value: object, key: PathKey | null): string | undefined {
  if (value instanceof RealPromise) {
    const path = pathOf(w.root, { keys: w.keys, key });
    throw new RealTypeError(`${path} is a promise: await it`);
  }
  if (isRawJson(value)) return ofRaw(w, value as { rawJSON: string }, key);
  const toJSON = ownWay(value);
  if (toJSON === undefined) return ofWhole(w, value, key);
  if (w.isStrict && getOwnPropertyDescriptor(value, "toJSON") !== undefined) {
    report(w, key, "an object with a toJSON of its own", null);
  }
  const made = apply(toJSON, value, [key === null ? "" : toText(key)]);
  if (typeof made !== "object" || made === null || made instanceof RealPromise) {
    return write(w, made, key);
  }
  return isRawJson(made) ? ofRaw(w, made as { rawJSON: string }, key) : ofWhole(w, made, key);
}

/** Returns the method by which an object makes its JSON; none that all of the language have. */
function ownWay(value: object): ((key: string) => unknown) | undefined {
  if (!("toJSON" in value)) return undefined; // asked for so, a proxy's trap for reading is not run
  const found = value.toJSON;
  if (typeof found !== "function" || found === dateToJson) return undefined;
  const inherited = (objectPrototype as { toJSON?: unknown }).toJSON;
  const ofLists = (arrayPrototype as { toJSON?: unknown }).toJSON;
  return found === inherited || found === ofLists ? undefined : found as () => unknown;
}

/** Writes JSON that the program wrote itself, which is of a primitive value. */
function ofRaw(w: Writing, raw: { rawJSON: string }, key: PathKey | null): string | undefined {
  const text = raw.rawJSON;
  const value = jsonParse(text);
  if (typeof value !== "number") return write(w, value, key);
  const known = jsonStringify(value);
  if (known !== text) {
    const short = text.length > 40 ? `${slice(text, 0, 40)}…` : text;
    report(w, key, `JSON.rawJSON of ${short}, no number as JavaScript writes it`, known);
  }
  return known;
}

function ofWhole(w: Writing, value: object, key: PathKey | null): string {
  if (value instanceof RealDate) {
    const time = dateTime(value);
    if (time === time) return quoted(isoText(value));
    report(w, key, "an invalid Date", "null");
    return "null";
  }
  if (value instanceof RealString) return ofText(w, stringOf(value), key);
  if (value instanceof RealNumber) return write(w, numberOf(value), key)!;
  if (value instanceof RealBoolean) return jsonStringify(booleanOf(value));
  if (value instanceof RealRegExp) return ofText(w, toText(value), key);
  const url = textOfUrl(value);
  if (url !== undefined) return ofText(w, url, key);
  if (includes(w.ancestors, value)) {
    report(w, key, "a reference to an object that contains it", '"[Circular]"');
    return '"[Circular]"';
  }
  if (w.ancestors.length >= MAX_DEPTH) {
    throw new RealRangeError(`the value is nested deeper than ${MAX_DEPTH} levels`);
  }
  push(w.ancestors, value);
  if (key !== null) push(w.keys, key);
  const text = container(w, value);
  if (key !== null) pop(w.keys);
  pop(w.ancestors);
  return text;
}

function container(w: Writing, value: object): string {
  if (value instanceof RealMap) return ofMap(w, value);
  if (value instanceof RealError) {
    return ofFields(w, ["name", "message"], [toText(value.name), toText(value.message)]);
  }
  if (value instanceof RealSet) {
    const items: unknown[] = [];
    setForEach(value, (item: unknown) => push(items, item));
    return ofList(w, items, items.length);
  }
  if (isArray(value)) return ofList(w, value, value.length);
  if (isView(value) && !(value instanceof RealDataView)) {
    return ofList(w, value as Uint8Array, viewLength(value));
  }
  const keys = keysOf(value);
  if (keys.length === 0) reportHidden(w, value);
  const values: unknown[] = [];
  for (let i = 0; i < keys.length; i++) push(values, (value as Record<string, unknown>)[keys[i]!]);
  return ofFields(w, keys, values);
}

/** Reports an object of a kind of the language whose contents are no fields, as an ArrayBuffer. */
function reportHidden(w: Writing, value: object): void {
  if (getPrototypeOf(value) === objectPrototype) return;
  const kind = slice(objectText(value), 8, -1);
  if (kind !== "Object") {
    w.lost({ keys: w.keys, key: null }, `an object of the kind ${slice(kind, 0, 40)}`, "{}");
  }
}

/** Writes an object if every key is a text, else a list of pairs. */
function ofMap(w: Writing, map: Map<unknown, unknown>): string {
  const keys: unknown[] = [];
  const values: unknown[] = [];
  const pairs: unknown[] = [];
  let texts = true;
  mapForEach(map, (value: unknown, key: unknown) => {
    texts = texts && typeof key === "string";
    push(keys, key);
    push(values, value);
    push(pairs, [key, value]);
  });
  return texts ? ofFields(w, keys as string[], values) : ofList(w, pairs, pairs.length);
}

function ofList(w: Writing, items: ArrayLike<unknown>, length: number): string {
  let text = "";
  for (let i = 0; i < length; i++) {
    text += `${i === 0 ? "" : ","}${write(w, items[i], i) ?? "null"}`;
  }
  return `[${text}]`;
}

function ofFields(w: Writing, keys: string[], values: unknown[]): string {
  let text = "";
  for (let i = 0; i < keys.length; i++) {
    const name = keys[i]!;
    const written = write(w, values[i], name);
    if (written === undefined) continue;
    text += `${text === "" ? "" : ","}${ofText(w, name, name)}:${written}`;
  }
  return `{${text}}`;
}

function quoted(text: string): string {
  return wellFormed(jsonStringify(text));
}

/** Writes a record of plain values, without calling any method that the program could define. */
export function flat(fields: Record<string, string | number | null>): string {
  const names = getOwnPropertyNames(fields);
  let text = "";
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!;
    text += `${i === 0 ? "" : ","}${jsonStringify(name)}:${jsonStringify(fields[name])}`;
  }
  return wellFormed(`{${text}}`);
}

/** Replaces lone surrogates, which alone JSON.stringify escapes as \ud8xx to \udfxx. */
function wellFormed(text: string): string {
  if (!contains(text, "\\ud")) return text;
  const escapes = /\\(?:ud[89a-f][0-9a-f]{2}|.)/g;
  let result = "";
  let from = 0;
  for (let found = exec(escapes, text); found !== null; found = exec(escapes, text)) {
    if (charCodeAt(found[0], 1) !== 0x75 || found[0].length === 2) continue;
    result += slice(text, from, found.index) + "\\ufffd";
    from = found.index + found[0].length;
  }
  return result + slice(text, from);
}
