/**
 * What a Worker of one program takes from Deno's web APIs, captured before the program runs. A realm
 * has none of them, and its own module of these names (realm/web.ts).
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
