import { deepStrictEqual, strictEqual, throws } from "node:assert";
import { flat, MAX_DEPTH, toJson } from "./json_safe.ts";

function nested(levels: number): unknown {
  let value: unknown = 0;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

Deno.test("values without a JSON form become the closest one", () => {
  const cases: [unknown, unknown][] = [
    [undefined, null],
    [() => 1, null],
    [Symbol("s"), null],
    [{ a: undefined, b: () => 1, c: Symbol("s"), d: 1 }, { d: 1 }],
    [[undefined, NaN, Infinity, -0], [null, null, null, 0]],
    [2n ** 64n, "18446744073709551616"],
    [new Date(0), "1970-01-01T00:00:00.000Z"],
    [new Date(NaN), null],
    [new Map([["a", new Map()]]), { a: {} }],
    [new Map([[1, 2]]), [[1, 2]]],
    [new Set([1, new Set()]), [1, []]],
    [new Uint8Array([1, 2]), [1, 2]],
    [new TypeError("no"), { name: "TypeError", message: "no" }],
    [new URL("https://a.example/b"), "https://a.example/b"],
    [{ path: "ok", toJSON: () => ({ path: "evil" }) }, { path: "ok" }],
    [
      "half \ud800, whole \u{1f600}, written \\ud800",
      "half \ufffd, whole \u{1f600}, written \\ud800",
    ],
    [{ "\udc00": 1 }, { "\ufffd": 1 }],
  ];
  for (const [value, expected] of cases) deepStrictEqual(JSON.parse(toJson(value)), expected);
});

Deno.test("a circular reference ends where it repeats", () => {
  const cycle: Record<string, unknown> = { list: [] };
  (cycle.list as unknown[]).push(cycle, { cycle });
  strictEqual(toJson(cycle), '{"list":["[Circular]",{"cycle":"[Circular]"}]}');
  const map = new Map<string, unknown>();
  map.set("self", map);
  strictEqual(toJson(map), '{"self":"[Circular]"}');
});

Deno.test("the same value twice side by side is no cycle", () => {
  const shared = { a: 1 };
  strictEqual(toJson([shared, shared, { shared }]), '[{"a":1},{"a":1},{"shared":{"a":1}}]');
});

Deno.test("nesting has an end", () => {
  toJson(nested(MAX_DEPTH - 1));
  throws(() => toJson(nested(MAX_DEPTH + 1)), /nested deeper than 100 levels/);
});

Deno.test("members that a program gives every object do not affect the text", () => {
  const evil = { value: () => ({ path: "evil" }), configurable: true };
  const before = Array.prototype[Symbol.iterator];
  const given = { path: ["ok", new Set(["a"])] };
  Object.defineProperty(Object.prototype, "toJSON", evil);
  Object.defineProperty(Array.prototype, Symbol.iterator, {
    value: function* () {
      yield "evil";
    },
    configurable: true,
  });
  try {
    strictEqual(toJson(given), '{"path":["ok",["a"]]}');
  } finally {
    delete (Object.prototype as { toJSON?: unknown }).toJSON;
    Object.defineProperty(Array.prototype, Symbol.iterator, {
      value: before,
      configurable: true,
      writable: true,
    });
  }
});

Deno.test("a flat record is out of a program's reach", () => {
  const real = Object.getOwnPropertyDescriptor(Object.prototype, "toJSON");
  Object.defineProperty(Object.prototype, "toJSON", { value: () => "mine", configurable: true });
  try {
    strictEqual(flat({ a: "x\ud800", b: 1, c: null }), '{"a":"x\\ufffd","b":1,"c":null}');
  } finally {
    if (real === undefined) delete (Object.prototype as { toJSON?: unknown }).toJSON;
  }
});
