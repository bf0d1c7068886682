/** What a program writes to its console becomes log entries of its journal. */
import { freeze, join, push, RealError, slice, toText } from "./primordials.ts";
import { toJson } from "./json_safe.ts";

export type Level = "debug" | "info" | "warn" | "error";

export const MAX_MESSAGE = 10_000;

/** A frozen console that hands every message on. */
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

function word(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "function") return `[Function ${toText(value.name)}]`;
  if (value instanceof RealError) return `${toText(value.name)}: ${toText(value.message)}`;
  if (typeof value !== "object" || value === null) return toText(value);
  try {
    return toJson(value);
  } catch (error) {
    return `[${toText(error)}]`;
  }
}
