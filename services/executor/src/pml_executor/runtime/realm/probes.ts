/**
 * Programs that every standing Worker runs before its first run, in realms like those of programs:
 * one that gets out, on whatever version of Deno, and the Worker is not used. Each returns "closed"
 * where it finds no way, and anything else, or nothing, where it does.
 */

/** Looks at all that can be reached for an object of another realm. */
export const WALK = `
const outside = (value) => {
  let top = value;
  for (let up = value; up !== null; up = Reflect.getPrototypeOf(up)) top = up;
  return top !== Object.prototype && Object.hasOwn(top, "hasOwnProperty");
};
const seen = new Set();
const list = [];
const add = (value, path) => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return;
  if (seen.has(value)) return;
  seen.add(value);
  list.push([value, path]);
};
const thrown = (f) => { try { return f(); } catch (error) { return error; } };
const over = () => { const deep = () => deep() + 1; return deep(); };
add(globalThis, "globalThis");
[mcp, mcp.a, mcp.a.b, mcp.call, capabilities, capabilities.a, args, console, __pml, import("x"),
  setTimeout, crypto, performance, this].forEach((value, i) => add(value, "bound " + i));
[() => null.x, over, () => eval("1"), () => new Function("1"), () => new Date(NaN).toISOString(),
  () => decodeURI("%"), () => JSON.parse("{"), () => structuredClone(1), () => Symbol() + "",
  () => mcp.x = 1, () => Symbol.keyFor(1), () => setTimeout(1), () => crypto.getRandomValues(null),
  () => new Intl.DateTimeFormat("!"), () => [].reduce((a) => a), () => "x".repeat(-1),
  () => new Proxy({}, { get() { return this.x.y; } }).z, () => __pml.at("n", 1)(),
  () => queueMicrotask(1), () => new Array(-1), () => BigInt(0.5), () => new Uint8Array(-1),
].forEach((f, i) => add(thrown(f), "thrown " + i));
const settle = (promise) => promise.then((value) => value, (error) => error);
add(await settle(import("node:vm")), "import");
add(await settle(import("data:text/javascript,export default 1")), "import of data");
add(await settle(mcp.call(1)), "call");
add(await settle(Promise.resolve("1").then(eval)), "eval");
add(await settle((async () => { over(); })()), "overflow");
add([].values(), "values");
add((function* () {})(), "generator");
add((async function* () {})(), "async generator");
for (let i = 0; i < list.length; i++) {
  const [value, path] = list[i];
  if (outside(value)) return path;
  add(Reflect.getPrototypeOf(value), path + ".[[Prototype]]");
  if (typeof value === "function") {
    add(thrown(() => value.caller), path + ".caller");
    add(thrown(() => value.arguments), path + ".arguments");
  }
  for (const key of Reflect.ownKeys(value)) {
    const found = Reflect.getOwnPropertyDescriptor(value, key);
    add(found.value, path + "." + String(key));
    add(found.get, path + ".get " + String(key));
    add(found.set, path + ".set " + String(key));
  }
}
return list.length > 500 ? "closed" : "too little seen: " + list.length;`;

/** Tries to get V8's call sites, which Deno makes in its own realm. */
export const CALL_SITES = `
let sites;
const take = (_, found) => (sites = found, "x");
const attempts = [
  () => { Error.prepareStackTrace = take; },
  () => Object.defineProperty(Error, "prepareStackTrace", { value: take }),
  () => { globalThis.Error = { prepareStackTrace: take }; },
  () => Object.defineProperty(globalThis, "Error", { value: { prepareStackTrace: take } }),
  () => Object.defineProperty(globalThis, "Error", { get: () => ({ prepareStackTrace: take }) }),
  () => { delete globalThis.Error; globalThis.Error = { prepareStackTrace: take }; },
  () => Object.setPrototypeOf(Error, { prepareStackTrace: take }),
  () => { Function.prototype.prepareStackTrace = take; },
  () => { Object.prototype.prepareStackTrace = take; },
];
for (const attempt of attempts) {
  try { attempt(); } catch { /* refused */ }
  for (const fail of [() => null.x, () => { throw new Error("x"); }, () => new TypeError().stack]) {
    try { fail(); } catch (error) { void error.stack; }
    const holder = {};
    Error.captureStackTrace(holder);
    void holder.stack;
  }
}
return sites === undefined ? "closed" : "call sites";`;

/** Tries to load modules, as code and through code from text. */
export const MODULES = `
const found = [];
const load = async (name, attempt) => {
  try { found.push(name + " " + typeof (await attempt())); } catch { /* refused */ }
};
await load("import", () => import("node:vm"));
await load("data", () => import("data:text/javascript,export default 1"));
await load("eval", () => eval("import('node:vm')"));
await load("indirect", () => (0, eval)("import('node:vm')"));
await load("promised", () => Promise.resolve("import('node:vm')").then(eval));
await load("Function", () => new Function("return import('node:vm')")());
await load("async", () => (async () => {}).constructor("return 1")());
await load("generator", () => (function* () {}).constructor("return 1")());
await load("reduced", () => ["import('node:vm')"].map(eval)[0]);
return found.length === 0 ? "closed" : found.join();`;

export const PROBES = { walk: WALK, "call sites": CALL_SITES, modules: MODULES };
