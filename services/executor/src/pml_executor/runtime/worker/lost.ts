/** The parts of a value that its JSON does not say, by their paths. */
import { exec, jsonStringify, RealTypeError, slice, toText } from "./primordials.ts";

/** A place in a value: the keys that lead to the container, and the key there. */
export interface At {
  keys: readonly PathKey[];
  key: PathKey | null;
}

export type PathKey = string | number;

/** Receives what JSON cannot say at a place, and what stands there instead; null if nothing. */
export type OnLost = (at: At, found: string, instead: string | null) => void;

/** Maximum number of parts that are named; others are counted. */
export const MAX_LOST = 20;
const MAX_KEY = 60;
const MAX_PATH = 200;

/** Returns a place in words of the language, as `result.list[0]`; `root` is the whole value. */
export function pathOf(root: string, { keys, key }: At): string {
  let path = root;
  for (let i = 0; i < keys.length; i++) path += step(keys[i]!);
  if (key !== null) path += step(key);
  return path.length > MAX_PATH ? `${slice(path, 0, MAX_PATH)}…` : path;
}

function step(key: PathKey): string {
  if (typeof key === "number") return `[${toText(key)}]`;
  const short = key.length > MAX_KEY ? `${slice(key, 0, MAX_KEY)}…` : key;
  return exec(/^[A-Za-z_$][\w$]*$/, short) === null ? `[${jsonStringify(short)}]` : `.${short}`;
}

/** Collects what is lost of a result, in sentences. */
export class LostParts {
  #root: string;
  #said: string[] = [];
  #others = 0;

  constructor(root: string) {
    this.#root = root;
  }

  readonly add: OnLost = (at, found, instead) => {
    if (this.#said.length === MAX_LOST) {
      this.#others++;
      return;
    }
    const what = instead === null ? "it is left out" : `it became ${instead}`;
    this.#said[this.#said.length] = `${pathOf(this.#root, at)} was ${found}: ${what}`;
  };

  /** The sentences, the first `MAX_LOST` and one that counts the others. */
  get sentences(): string[] {
    const said = this.#said;
    if (this.#others > 0) {
      said[said.length] = `${toText(this.#others)} other parts of the ${this.#root} were lost, too`;
      this.#others = 0;
    }
    return said;
  }
}

/** Refuses whatever would be lost of the arguments of a call. Throws TypeError. */
export function refusing(tool: string): OnLost {
  return (at, found) => {
    throw new RealTypeError(
      `${tool}: ${pathOf("args", at)} is ${found}, which JSON cannot say; pass a value that it can`,
    );
  };
}
