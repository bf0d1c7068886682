/** The program's console, whose messages become log entries of the journal. */
import { inWords, isError } from "./failure.ts";
import { freeze, join, push, slice, toText } from "./primordials.ts";
import { toJson } from "./json_safe.ts";

export type Level = "debug" | "info" | "warn" | "error";

export const MAX_MESSAGE = 10_000;

/** Builds a frozen console that passes every message to `write`. */
export function consoleOf(write: (level: Level, message: string) => void): Partial<Console> {
  const at = (level: Level) => (...values: unknown[]) => write(level, format(values));
  const ignore = () => {};
  return freeze({
    debug: at("debug"),
    trace: at("debug"),
    log: at("info"),
    info: at("info"),
    dir: at("info"),
    table: at("info"),
    group: at("info"),
    groupCollapsed: at("info"),
    warn: at("warn"),
    error: at("error"),
    assert: (condition?: unknown, ...values: unknown[]) => {
      if (!condition) write("error", format(["Assertion failed:", ...values]));
    },
    groupEnd: ignore,
    clear: ignore,
    count: ignore,
    countReset: ignore,
    time: ignore,
    timeLog: ignore,
    timeEnd: ignore,
  });
}

function format(values: unknown[]): string {
  const words: string[] = [];
  for (let i = 0; i < values.length; i++) push(words, word(values[i]));
  const message = join(words, " ");
  if (message.length <= MAX_MESSAGE) return message;
  return `${slice(message, 0, MAX_MESSAGE)}… (${message.length - MAX_MESSAGE} more characters)`;
}

/** Formats a value; never throws, whatever the program's getters and traps do. */
function word(value: unknown): string {
  try {
    if (typeof value === "string") return value;
    if (typeof value === "function") return `[Function ${toText(value.name)}]`;
    if (isError(value)) return `${toText(value.name)}: ${toText(value.message)}`;
    return typeof value === "object" && value !== null ? toJson(value) : toText(value);
  } catch (error) {
    return `[${inWords(error)}]`;
  }
}
