/**
 * `Symbol.for` and `Symbol.keyFor` with a table of the realm's own: V8's table belongs to the
 * isolate and is never emptied, so that one run could read what another has left in it, or fill it.
 */
import {
  defineProperty,
  mapGet,
  mapSet,
  RealMap,
  RealTypeError,
  toText,
} from "../worker/primordials.ts";

/** Replaces both functions. */
export function ownSymbols(): void {
  const symbols = new RealMap<string, symbol>();
  const names = new RealMap<symbol, string>();
  const create = Symbol;
  const own = {
    for(name: unknown): symbol {
      const key = typeof name === "symbol" ? refuse(name) : toText(name);
      let symbol = mapGet(symbols, key) as symbol | undefined;
      if (symbol === undefined) {
        symbol = create(key);
        mapSet(symbols, key, symbol);
        mapSet(names, symbol, key);
      }
      return symbol;
    },
    keyFor(symbol: unknown): string | undefined {
      if (typeof symbol !== "symbol") throw new RealTypeError(`${toText(symbol)} is not a symbol`);
      return mapGet(names, symbol) as string | undefined;
    },
  };
  for (const name of ["for", "keyFor"] as const) {
    defineProperty(Symbol, name, { value: own[name], writable: true, configurable: true });
  }
}

function refuse(_symbol: symbol): never {
  throw new RealTypeError("Cannot convert a Symbol value to a string");
}
