/** Failures of a program: the thrown error and its position in the program's text. */
import {
  exec,
  includes,
  isArray,
  push,
  RealError,
  slice,
  split,
  startsWith,
} from "./primordials.ts";
import { toJson } from "./json_safe.ts";

/** A position; `module` is the capability in whose text it is, null for the program's. */
export interface Place {
  line: number | null;
  column: number | null;
  module: number | null;
}

export interface Failure extends Place {
  name: string;
  message: string;
}

const NOWHERE: Place = { line: null, column: null, module: null };
const MAX_TEXT = 4_000;
/** Bounds of what is said of causes and of the errors of an AggregateError. */
const MAX_REASONS = 10;
const MAX_REASON = 500;
const MAX_DEPTH_OF_REASONS = 5;

/** Returns the first position in a program that a stack or a loader's message names, from 1. */
export function placeIn(text: unknown, prelude: number): Place {
  if (typeof text !== "string") return NOWHERE;
  const lines = split(text, "\n" as never);
  for (let i = 0; i < lines.length; i++) {
    const found = exec(
      /data:application\/typescript(?:;capability=(\d+))?,.*:(\d+):(\d+)\)?$/,
      lines[i]!,
    );
    if (found !== null) {
      const line = +found[2]!;
      const column = +found[3]!;
      const module = found[1] === undefined ? null : +found[1];
      return { line, column: line === 1 ? column - prelude : column, module };
    }
  }
  return NOWHERE;
}

/** Returns the position in the program where an error was created. */
export function placeOf(error: Error, prelude: number): Place {
  return placeIn(read(error, "stack"), prelude);
}

/** Describes any thrown value. */
export function describe(thrown: unknown, prelude: number): Failure {
  if (isError(thrown)) {
    const { name, message } = texts(thrown);
    const whole = slice(message + reasons(thrown), 0, MAX_TEXT);
    return { name, message: whole, ...placeIn(read(thrown, "stack"), prelude) };
  }
  return {
    name: "",
    message: slice(`the program threw ${plain(thrown)}`, 0, MAX_TEXT),
    ...NOWHERE,
  };
}

/** Describes a loader's error, whose message has the position at the end of its first line. */
export function describeLoad(thrown: unknown, prelude: number): Failure {
  if (!isError(thrown)) return describe(thrown, prelude);
  const { name, message } = texts(thrown);
  const found = exec(/^(?:SyntaxError: )?(.*?)(?: at data:.*)?$/m, message);
  const syntax = startsWith(message, "SyntaxError: ");
  return {
    name: syntax ? "SyntaxError" : name,
    message: found === null ? message : found[1]!,
    ...placeIn(message, prelude),
  };
}

/** Returns the errors in an AggregateError and the causes of an error, a line for each. */
function reasons(error: Error): string {
  const seen: unknown[] = [error];
  let text = "";
  let left = MAX_REASONS;
  let isMore = false;
  const add = (reason: unknown, head: string, depth: number) => {
    if (includes(seen, reason)) return;
    if (left === 0) {
      isMore = true;
      return;
    }
    left--;
    const said = isError(reason) ? titleOf(reason) : plain(reason);
    text += `\n${head}${slice(said, 0, MAX_REASON)}`;
    if (typeof reason === "object" && reason !== null) push(seen, reason);
    if (isError(reason) && depth < MAX_DEPTH_OF_REASONS) follow(reason, depth + 1);
  };
  const follow = (outer: Error, depth: number) => {
    const errors = read(outer, "errors");
    const all = count(errors);
    for (let i = 0; i < all && !isMore; i++) add(item(errors, i), `error ${i + 1}: `, depth);
    const cause = read(outer, "cause");
    if (cause !== undefined) add(cause, "caused by ", depth);
  };
  follow(error, 0);
  return isMore ? `${text}\n…` : text;
}

function titleOf(error: Error): string {
  const { name, message } = texts(error);
  return name === "" ? message : message === "" ? name : `${name}: ${message}`;
}

/** Returns the length of a list, 0 for any other value; never throws. */
function count(value: unknown): number {
  try {
    return isArray(value) ? value.length : 0;
  } catch {
    return 0;
  }
}

function item(list: unknown, index: number): unknown {
  try {
    return (list as unknown[])[index];
  } catch {
    return undefined;
  }
}

function texts(error: Error): { name: string; message: string } {
  const name = read(error, "name");
  const message = read(error, "message");
  return {
    name: typeof name === "string" ? slice(name, 0, MAX_TEXT) : "Error",
    message: typeof message === "string" ? slice(message, 0, MAX_TEXT) : "",
  };
}

function read(
  error: Error,
  key: "name" | "message" | "stack" | "cause" | "errors",
): unknown {
  try {
    return (error as AggregateError)[key];
  } catch {
    return undefined;
  }
}

/** Never throws, even for a proxy whose trap does: every failure must be reported. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof RealError;
  } catch {
    return false;
  }
}

function plain(thrown: unknown): string {
  try {
    return typeof thrown === "string" ? thrown : toJson(thrown);
  } catch (error) {
    return inWords(error);
  }
}

/** Describes the error of reading a value; never throws. */
export function inWords(error: unknown): string {
  const { name, message } = isError(error) ? texts(error) : { name: "TypeError", message: "" };
  return name === "TypeError" ? "a value" : `${name}: ${message}`;
}
