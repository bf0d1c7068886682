/** The names of worker/web.ts for a realm, which has no web API but those of our own. */
import { promiseThen, RealPromise } from "../worker/primordials.ts";

const settled = RealPromise.resolve();

/** Calls a function of ours, which throws nothing, among the microtasks of this context. */
export function soon(then: () => void): void {
  promiseThen(settled, then);
}

/** No object of a realm is a URL. */
export function textOfUrl(_value: object): string | undefined {
  return undefined;
}
