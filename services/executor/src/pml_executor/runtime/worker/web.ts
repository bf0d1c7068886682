/**
 * Deno's web APIs that a Worker of one program needs, captured before the program runs. Realms use
 * realm/web.ts, a module with the same exports, instead.
 */
import { floor, max, uncurry } from "./primordials.ts";
import type { Alarm } from "./timers.ts";

export const RealMessageChannel = MessageChannel;
export const encodeText = encodeURIComponent;
export const soon = queueMicrotask;

const RealURL = URL;
const urlText = uncurry(URL.prototype.toString);
const abortAfter: (ms: number) => AbortSignal = AbortSignal.timeout.bind(AbortSignal);
const addListener = uncurry(EventTarget.prototype.addEventListener);

/** Returns the text of a URL; undefined for any other object. */
export function textOfUrl(value: object): string | undefined {
  return value instanceof RealURL ? urlText(value) : undefined;
}

/** Based on AbortSignal: Deno's own timers load 9 ms of Node's code, and need deleted globals. */
export const alarm: Alarm = {
  now: performance.now.bind(performance),
  after: (ms, ring) => addListener(abortAfter(floor(max(0, ms) + 0.999)), "abort", ring),
};
