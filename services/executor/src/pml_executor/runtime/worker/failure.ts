/** Failures of a program: the thrown error and its position in the program's text. */
import { exec, RealError, slice, split, startsWith } from "./primordials.ts";
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
    return { name, message, ...placeIn(read(thrown, "stack"), prelude) };
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

function texts(error: Error): { name: string; message: string } {
  const name = read(error, "name");
  const message = read(error, "message");
  return {
    name: typeof name === "string" ? slice(name, 0, MAX_TEXT) : "Error",
    message: typeof message === "string" ? slice(message, 0, MAX_TEXT) : "",
  };
}

function read(error: Error, key: "name" | "message" | "stack"): unknown {
  try {
    return error[key];
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
