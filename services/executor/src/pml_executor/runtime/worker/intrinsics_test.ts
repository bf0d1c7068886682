import { deepStrictEqual } from "node:assert";
import { build } from "../build.ts";
import globals from "./globals.ts" with { type: "text" };
import intrinsics from "./intrinsics.ts" with { type: "text" };
import primordials from "./primordials.ts" with { type: "text" };

/** Runs code in a Worker whose globals are reduced and everything frozen; returns its message. */
function frozen(code: string): Promise<unknown> {
  return reduced(`freezeMembers(); ${code}`);
}

/** Runs code in a Worker whose globals are reduced; returns its message. */
async function reduced(code: string): Promise<unknown> {
  const text = `${build([primordials, intrinsics, globals])}
    const tell = postMessage.bind(globalThis);
    reduceGlobals({});
    const error = (f) => { try { f(); return "done"; } catch (e) { return e.name; } };
    tell((() => { ${code} })());`;
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module" });
  try {
    return await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => (event.preventDefault(), reject(new Error(event.message)));
    });
  } finally {
    worker.terminate();
    URL.revokeObjectURL(url);
  }
}

Deno.test("nothing of the language can be replaced, added or taken away", async () => {
  const tried = await frozen(`
    const hidden = [[].values(), new Map().keys(), "".matchAll(/a/g), (function* () {})(),
      [].values().map((x) => x), Iterator.from({ next() {} })];
    return [
      error(() => { Array.prototype.map = () => 1; }),
      error(() => { Object.prototype.toString = () => 1; }),
      error(() => { Object.prototype.then = () => 1; }),
      error(() => { Object.defineProperty(Promise.prototype, "constructor", { get() {} }); }),
      error(() => { Array.prototype.slice.call = () => 1; }),
      error(() => { Object.prototype.hasOwnProperty.call = () => 1; }),
      error(() => { JSON.parse = () => 1; }),
      error(() => { delete Map.prototype.get; }),
      error(() => { Error.prepareStackTrace = () => 1; }),
      error(() => { Object.getOwnPropertyDescriptor(Object.prototype, "toString").get.x = 1; }),
      ...hidden.map((it) => error(() => { Object.getPrototypeOf(it).next = () => 1; })),
    ];`);
  deepStrictEqual(tried, Array(16).fill("TypeError"));
});

Deno.test("nothing that can be reached is left out", async () => {
  const left = await frozen(`
    const seen = new Set([null, undefined, globalThis, Error]);
    const list = [];
    const find = (value, path) => {
      if (!/object|function/.test(typeof value) || seen.has(value)) return;
      seen.add(value);
      list.push([value, path]);
    };
    for (const name of Object.getOwnPropertyNames(globalThis)) find(globalThis[name], name);
    for (const made of [[].values(), "".matchAll(/a/g), [].values().map((x) => x),
      Iterator.from({ next() {} }), async function* () {}, async () => {}, function* () {}]) {
      find(Object.getPrototypeOf(made), "hidden");
    }
    for (const [object, path] of list) {
      find(Object.getPrototypeOf(object), path + ".__proto__");
      for (const name of Reflect.ownKeys(object)) {
        const { value, get, set } = Object.getOwnPropertyDescriptor(object, name);
        for (const part of [value, get, set]) find(part, path + "." + String(name));
        try { find(object[name], path + "." + String(name)); } catch {}
      }
    }
    // These functions are no methods, but create nothing either.
    const made = /^(URL\\.\\w+|Object\\.prototype\\.__proto__)\\.prototype$/;
    const left = list.filter(([object, path]) => !Object.isFrozen(object) && !made.test(path));
    return [list.length > 800, left.map(([, path]) => path)];`);
  deepStrictEqual(left, [true, []]);
});

Deno.test("without capabilities no built-in can be replaced, added or taken away", async () => {
  const tried = await reduced(`
    const hidden = [[].values(), new Map().keys(), "".matchAll(/a/g), (function* () {})(),
      [].values().map((x) => x), Iterator.from({ next() {} })];
    const made = [function* () {}, async () => {}, async function* () {}];
    return [
      error(() => { Array.prototype.map = () => 1; }),
      error(() => { Object.prototype.toString = () => 1; }),
      error(() => { Object.prototype.then = () => 1; }),
      error(() => { JSON.parse = () => 1; }),
      error(() => { Intl.NumberFormat.prototype.format = () => 1; }),
      error(() => { delete Map.prototype.get; }),
      error(() => { Error.prepareStackTrace = () => 1; }),
      error(() => { Object.getPrototypeOf(Int8Array).from = () => 1; }),
      ...hidden.map((it) => error(() => { Object.getPrototypeOf(it).next = () => 1; })),
      ...made.map((it) => error(() => { it.constructor.x = () => 1; })),
    ];`);
  deepStrictEqual(tried, Array(17).fill("TypeError"));
});

Deno.test("objects of a program take the names that the language's have", async () => {
  const said = await frozen(`
    const counts = {};
    for (const word of ["constructor", "toString", "valueOf", "hasOwnProperty", "a", "a"]) {
      counts[word] = Object.hasOwn(counts, word) ? counts[word] + 1 : 1;
    }
    class Own extends RangeError { constructor() { super("old"); this.name = "Own"; this.message = "new"; } }
    function Old() {}
    Old.prototype = Object.create(Error.prototype);
    Old.prototype.constructor = Old;
    Old.prototype.toString = () => "old";
    const space = () => 1;
    space.call = "c";
    const date = new Date(0);
    date.toString = () => "then";
    const copied = Object.assign({}, { toString: () => "copied" });
    Error.stackTraceLimit = 3;
    return [counts, Object.keys(counts).length, String(new Own()), Object.keys(new Own()),
      String(new Old()), space.call, String(date), String(copied), Error.stackTraceLimit];`);
  deepStrictEqual(said, [
    { constructor: 1, toString: 1, valueOf: 1, hasOwnProperty: 1, a: 2 },
    5,
    "Own: new",
    ["name"],
    "old",
    "c",
    "then",
    "copied",
    3,
  ]);
});

Deno.test("what is not replaced is as it was", async () => {
  const said = await frozen(`
    function deep() { return deep() + 1; }
    let overflow;
    try { deep(); } catch (e) { overflow = e.name + ": " + e.message; }
    return [\`\${{}}\`, String(() => 1).length > 0, new TypeError("x").toString(), Object.keys({}),
      Object.getOwnPropertyNames(Object.prototype).length, overflow, {}.constructor === Object,
      [3, 1].map((x) => x).sort().join(), JSON.stringify({ a: new Date(0) })];`);
  deepStrictEqual(said, [
    "[object Object]",
    true,
    "TypeError: x",
    [],
    12,
    "RangeError: Maximum call stack size exceeded",
    true,
    "1,3",
    '{"a":"1970-01-01T00:00:00.000Z"}',
  ]);
});
