/**
 * Values as JSON text, the only form in which they leave the program.
 *
 * Not by JSON.stringify: a person approves the contents of an object literal, so no `toJSON`, own
 * or inherited, may change them. `undefined`, functions and symbols are left out of objects and
 * become null elsewhere; NaN and the infinities become null; a BigInt becomes its digits; a Date
 * and a URL their text; a Map an object or a list of pairs; a Set and a typed array a list; an
 * Error its name and message; a circular reference "[Circular]". Lone surrogates become U+FFFD.
 * Deeper nesting than `MAX_DEPTH` is an error.
 */
import {
  charCodeAt,
  contains,
  dateTime,
  exec,
  getOwnPropertyNames,
  includes,
  isArray,
  isoText,
  isView,
  jsonStringify,
  keysOf,
  mapForEach,
  pop,
  push,
  RealDataView,
  RealDate,
  RealError,
  RealMap,
  RealRangeError,
  RealSet,
  setForEach,
  slice,
  toText,
  viewLength,
} from "./primordials.ts";
import { textOfUrl } from "./web.ts";

export const MAX_DEPTH = 100;

/** Returns the JSON text of `value`; "null" where JSON has none. Throws RangeError if too deep. */
export function toJson(value: unknown): string {
  return write(value, []) ?? "null";
}

/** Returns the text; undefined for values that objects leave out. `ancestors` contain the value. */
function write(value: unknown, ancestors: unknown[]): string | undefined {
  switch (typeof value) {
    case "string":
      return quoted(value);
    case "bigint":
      return quoted(toText(value));
    case "number":
    case "boolean":
      return jsonStringify(value);
    case "object":
      return value === null ? "null" : nested(value, ancestors);
    default:
      return undefined;
  }
}

function nested(value: object, ancestors: unknown[]): string {
  if (value instanceof RealDate) {
    const time = dateTime(value);
    return time === time ? quoted(isoText(value)) : "null";
  }
  const url = textOfUrl(value);
  if (url !== undefined) return quoted(url);
  if (includes(ancestors, value)) return '"[Circular]"';
  if (ancestors.length >= MAX_DEPTH) {
    throw new RealRangeError(`the value is nested deeper than ${MAX_DEPTH} levels`);
  }
  push(ancestors, value);
  const text = container(value, ancestors);
  pop(ancestors);
  return text;
}

function container(value: object, ancestors: unknown[]): string {
  if (value instanceof RealMap) return ofMap(value, ancestors);
  if (value instanceof RealError) {
    return ofFields(["name", "message"], [toText(value.name), toText(value.message)], ancestors);
  }
  if (value instanceof RealSet) {
    const items: unknown[] = [];
    setForEach(value, (item: unknown) => push(items, item));
    return ofList(items, items.length, ancestors);
  }
  if (isArray(value)) return ofList(value, value.length, ancestors);
  if (isView(value) && !(value instanceof RealDataView)) {
    return ofList(value as Uint8Array, viewLength(value), ancestors);
  }
  const keys = keysOf(value);
  const values: unknown[] = [];
  for (let i = 0; i < keys.length; i++) push(values, (value as Record<string, unknown>)[keys[i]!]);
  return ofFields(keys, values, ancestors);
}

/** Writes an object if every key is a text, else a list of pairs. */
function ofMap(map: Map<unknown, unknown>, ancestors: unknown[]): string {
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
  return texts
    ? ofFields(keys as string[], values, ancestors)
    : ofList(pairs, pairs.length, ancestors);
}

function ofList(items: ArrayLike<unknown>, length: number, ancestors: unknown[]): string {
  let text = "";
  for (let i = 0; i < length; i++) {
    text += `${i === 0 ? "" : ","}${write(items[i], ancestors) ?? "null"}`;
  }
  return `[${text}]`;
}

function ofFields(keys: string[], values: unknown[], ancestors: unknown[]): string {
  let text = "";
  for (let i = 0; i < keys.length; i++) {
    const written = write(values[i], ancestors);
    if (written !== undefined) text += `${text === "" ? "" : ","}${quoted(keys[i]!)}:${written}`;
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
