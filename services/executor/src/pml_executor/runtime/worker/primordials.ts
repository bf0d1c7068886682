/**
 * Intrinsics captured before any program runs. Code that runs after the program's start uses only
 * these (and those of web.ts), so that a program that patches a prototype breaks only itself.
 */

// deno-lint-ignore no-explicit-any
type Method = (this: any, ...args: any[]) => any;
type Uncurried<M extends Method> = (
  self: ThisParameterType<M>,
  ...args: Parameters<M>
) => ReturnType<M>;

export const { bind: functionBind, call: functionCall, apply: functionApply } = Function.prototype;
export const uncurry: <M extends Method>(method: M) => Uncurried<M> = functionBind.bind(
  functionCall,
) as never;

export const jsonStringify = JSON.stringify;
export const jsonParse = JSON.parse;
export const { freeze, create, defineProperty, getOwnPropertyNames, preventExtensions } = Object;
export const { getPrototypeOf, getOwnPropertyDescriptor, keys: keysOf } = Object;
export const { setPrototypeOf } = Object;
export const { construct, deleteProperty, apply, ownKeys: ownKeysOf } = Reflect;
export const { isArray } = Array;
export const { isView } = ArrayBuffer;
export const RealDataView = DataView;
export const { max, floor } = Math;
export const toText = String;
export const { prototype: objectPrototype } = Object;
export const { prototype: arrayPrototype } = Array;
/** Whether a value is one of JSON.rawJSON. */
export const isRawJson: (value: unknown) => boolean =
  (JSON as unknown as { isRawJSON: (value: unknown) => boolean }).isRawJSON;
export const RealBoolean = Boolean;
export const RealNumber = Number;
export const RealString = String;
export const RealRegExp = RegExp;
export const RealDate = Date;
export const RealError = Error;
export const RealMap = Map;
export const RealSet = Set;
export const RealPromise = Promise;
export const RealTypeError = TypeError;
export const RealRangeError = RangeError;
export const RealWeakMap = WeakMap;
export const RealProxy = Proxy;
export const RealUint8Array = Uint8Array;

export const mapGet = uncurry(Map.prototype.get);
export const mapSet = uncurry(Map.prototype.set);
export const mapForEach = uncurry(Map.prototype.forEach);
export const setForEach = uncurry(Set.prototype.forEach);
export const dateTime = uncurry(Date.prototype.getTime);
export const isoText = uncurry(Date.prototype.toISOString);
export const dateToJson: unknown = Date.prototype.toJSON;
export const objectText = uncurry(Object.prototype.toString);
export const booleanOf = uncurry(Boolean.prototype.valueOf);
export const numberOf = uncurry(Number.prototype.valueOf);
export const stringOf = uncurry(String.prototype.valueOf);
export const bigintText = uncurry(BigInt.prototype.toString);
export const viewLength: (view: object) => number = uncurry(
  getOwnPropertyDescriptor(getPrototypeOf(Uint8Array.prototype), "length")!.get!,
);
export const mapDelete = uncurry(Map.prototype.delete);
export const weakGet = uncurry(WeakMap.prototype.get);
export const weakSet = uncurry(WeakMap.prototype.set);
export const promiseThen = uncurry(Promise.prototype.then);
export const push = uncurry(Array.prototype.push);
export const pop = uncurry(Array.prototype.pop);
export const shift = uncurry(Array.prototype.shift);
export const includes = uncurry(Array.prototype.includes);
export const join = uncurry(Array.prototype.join);
export const slice = uncurry(String.prototype.slice);
export const split = uncurry(String.prototype.split);
export const contains = uncurry(String.prototype.includes);
export const startsWith = uncurry(String.prototype.startsWith);
export const charCodeAt = uncurry(String.prototype.charCodeAt);
export const digits = uncurry(Number.prototype.toString);
export const exec = uncurry(RegExp.prototype.exec);
