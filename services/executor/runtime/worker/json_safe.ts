/**
 * Values as JSON text, the only form in which they leave the program.
 *
 * `undefined`, functions and symbols vanish from objects and become null elsewhere; NaN and the
 * infinities become null; a BigInt becomes its digits; a Map an object or a list of pairs; a Set
 * and a typed array a list; an Error its name and message; what contains itself "[Circular]".
 * Half surrogates become U+FFFD. Deeper nesting than `MAX_DEPTH` is an error.
 */
import {
  arrayFrom,
  charCodeAt,
  contains,
  create,
  exec,
  getOwnPropertyNames,
  includes,
  isView,
  jsonStringify,
  pop,
  push,
  RealDataView,
  RealError,
  RealMap,
  RealRangeError,
  RealSet,
  slice,
  toText,
} from "./primordials.ts";

export const MAX_DEPTH = 100;

/** JSON text of `value`; "null" where JSON has no word for it. Throws RangeError when too deep. */
export function toJson(value: unknown): string {
  const ancestors: unknown[] = []; // as they are written
  const originals: unknown[] = []; // as the program has them
  const text = jsonStringify(value, function (this: unknown, _key: string, item: unknown) {
    while (ancestors.length > 0 && ancestors[ancestors.length - 1] !== this) {
      pop(ancestors);
      pop(originals);
    }
    const plain = simplify(item);
    if (typeof plain !== "object" || plain === null) return plain;
    if (includes(originals, item)) return "[Circular]";
    if (ancestors.length >= MAX_DEPTH) {
      throw new RealRangeError(`the value is nested deeper than ${MAX_DEPTH} levels`);
    }
    push(ancestors, plain);
    push(originals, item);
    return plain;
  });
  return text === undefined ? "null" : wellFormed(text);
}

/** A record of plain values, which no method of the program's can have a hand in. */
export function flat(fields: Record<string, string | number | null>): string {
  const names = getOwnPropertyNames(fields);
  let text = "";
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!;
    text += `${i === 0 ? "" : ","}${jsonStringify(name)}:${jsonStringify(fields[name])}`;
  }
  return wellFormed(`{${text}}`);
}

function simplify(item: unknown): unknown {
  if (typeof item === "bigint") return toText(item);
  if (item instanceof RealMap) return mapToPlain(item);
  if (item instanceof RealSet) return arrayFrom(item);
  if (isView(item) && !(item instanceof RealDataView)) return arrayFrom(item as Uint8Array);
  if (item instanceof RealError) return { name: toText(item.name), message: toText(item.message) };
  return item;
}

function mapToPlain(map: Map<unknown, unknown>): unknown {
  const pairs = arrayFrom(map);
  const plain = create(null);
  for (let i = 0; i < pairs.length; i++) {
    const [key, value] = pairs[i] as [unknown, unknown];
    if (typeof key !== "string") return pairs;
    plain[key] = value;
  }
  return plain;
}

/** JSON.stringify escapes half surrogates, and only those, as \ud8xx to \udfxx. */
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
