import { deepStrictEqual, ok, strictEqual, throws } from "node:assert";
import { argumentsToJson, flat, MAX_DEPTH, toJson } from "./json_safe.ts";
import { LostParts, MAX_LOST } from "./lost.ts";

// deno-lint-ignore no-explicit-any
const JSON_RAW: (text: string) => unknown = (JSON as any).rawJSON;

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
    [/a+"/gi, '/a+"/gi'],
    [[new Number(5), new String("x"), new Boolean(false)], [5, "x", false]],
    [new URL("https://a.example/b"), "https://a.example/b"],
    [{ path: "ok", toJSON: () => ({ path: "own" }) }, { path: "own" }],
    [{ a: { toJSON: (key: string) => `at ${key}` } }, { a: "at a" }],
    [[{ toJSON: (key: string) => `at ${key}` }], ["at 0"]],
    [{ toJSON: () => ({ toJSON: () => 1, a: 1 }) }, { a: 1 }],
    [{ a: { toJSON: () => undefined } }, {}],
    [
      new (class extends Date {
        override toJSON = () => "today";
      })(0),
      "today",
    ],
    [JSON_RAW("1.5"), 1.5],
    [{ a: { toJSON: () => JSON_RAW("123") } }, { a: 123 }],
    [JSON_RAW('"text"'), "text"],
    [
      "half \ud800, whole \u{1f600}, written \\ud800",
      "half \ufffd, whole \u{1f600}, written \\ud800",
    ],
    [{ "\udc00": 1 }, { "\ufffd": 1 }],
  ];
  for (const [value, expected] of cases) deepStrictEqual(JSON.parse(toJson(value)), expected);
});

function lostOf(value: unknown): string[] {
  const lost = new LostParts("result");
  toJson(value, lost.add, "result");
  return lost.sentences;
}

const circle: { in: unknown[] } = { in: [] };
circle.in[0] = circle;
const LOST: [unknown, string][] = [
  [NaN, "result was NaN: it became null"],
  [{ a: [1, -Infinity] }, "result.a[1] was -Infinity: it became null"],
  [{ "odd key": { f() {} } }, 'result["odd key"].f was a function: it is left out'],
  [[() => 1], "result[0] was a function: it became null"],
  [() => 1, "result was a function: it became null"],
  [{ s: Symbol("s") }, "result.s was a symbol: it is left out"],
  [[undefined], "result[0] was undefined: it became null"],
  [new Date(NaN), "result was an invalid Date: it became null"],
  [
    { t: "\ud800" },
    "result.t was text with half of a surrogate pair: it became text with U+FFFD in its place",
  ],
  [
    { "\udc00": 1 },
    'result["\\udc00"] was text with half of a surrogate pair: it became text with U+FFFD in its ' +
    "place",
  ],
  [circle, 'result.in[0] was a reference to an object that contains it: it became "[Circular]"'],
  [{ b: new ArrayBuffer(8) }, "result.b was an object of the kind ArrayBuffer: it became {}"],
  [new WeakMap(), "result was an object of the kind WeakMap: it became {}"],
  [new Map([["k", NaN]]), "result.k was NaN: it became null"],
  [new Set([NaN]), "result[0] was NaN: it became null"],
  [{ toJSON: () => NaN }, "result was NaN: it became null"],
  [
    { id: JSON_RAW("9007199254740993") },
    "result.id was JSON.rawJSON of 9007199254740993, no number as JavaScript writes it: " +
    "it became 9007199254740992",
  ],
];

Deno.test("what JSON cannot say of a result is named by its path", () => {
  for (const [value, expected] of LOST) deepStrictEqual(lostOf(value), [expected]);
});

Deno.test("a result that JSON says whole loses nothing", () => {
  const whole = {
    a: undefined,
    z: -0,
    d: new Date(0),
    big: 1n,
    m: new Map([[1, 2]]),
    e: {},
    l: [],
  };
  for (const value of [undefined, null, whole, new (class Empty {})(), Object.create(null)]) {
    deepStrictEqual(lostOf(value), []);
  }
});

Deno.test("of many lost parts the first are named and the others counted", () => {
  const lost = lostOf(new Array(MAX_LOST + 7).fill(NaN));
  strictEqual(lost.length, MAX_LOST + 1);
  strictEqual(lost.at(-1), "7 other parts of the result were lost, too");
  const long = lostOf({ ["k".repeat(500)]: { ["k".repeat(500)]: { ["'".repeat(500)]: NaN } } });
  ok(long[0]!.length < 300);
});

Deno.test("arguments of a call lose nothing: they are refused by path", () => {
  for (const [value, expected] of LOST) {
    const found = expected.slice("result".length).split(" was ");
    const [path, what] = [found[0]!, found[1]!.split(": it ")[0]!];
    const given = { x: value };
    throws(() => argumentsToJson("fs:write", given), (error: Error) => {
      strictEqual(error.name, "TypeError");
      if ((value as { toJSON?: unknown })?.toJSON !== undefined && !(value instanceof Date)) {
        return error.message.startsWith("fs:write: args.x is an object with a toJSON of its own");
      }
      const said =
        `fs:write: args.x${path} is ${what}, which JSON cannot say; pass a value that it can`;
      strictEqual(error.message, said);
      return true;
    });
  }
});

Deno.test("arguments are sent as their classes write them", () => {
  class Day extends Date {
    override toJSON() {
      return this.toISOString().slice(0, 10);
    }
  }
  class Euro {
    #cents = 150;
    toJSON() {
      return { euro: this.#cents / 100 };
    }
  }
  const given = {
    day: new Day(0),
    price: new Euro(),
    raw: JSON_RAW("12"),
    map: new Map([["a", 1]]),
    pattern: /x/u,
    site: new URL("https://a.example/"),
    gone: undefined,
    zero: -0,
  };
  deepStrictEqual(JSON.parse(argumentsToJson("fs:write", given)), {
    day: "1970-01-01",
    price: { euro: 1.5 },
    raw: 12,
    map: { a: 1 },
    pattern: "/x/u",
    site: "https://a.example/",
    zero: 0,
  });
  for (const text of ["9007199254740993", "1e400", "1.0", "0.1000000000000000055"]) {
    throws(
      () => argumentsToJson("fs:write", { n: JSON_RAW(text) }),
      /fs:write: args.n is JSON.rawJSON of/,
    );
  }
});

Deno.test("a promise is refused by its path", async () => {
  const promise = Promise.resolve(1);
  throws(
    () => toJson({ a: [promise] }, undefined, "result"),
    /^TypeError: result.a\[0\] is a promise: await it/,
  );
  throws(() => argumentsToJson("fs:write", { a: promise }), /args.a is a promise: await it/);
  throws(
    () => toJson({ a: { toJSON: () => promise } }, undefined, "result"),
    /result.a is a promise: await it/,
  );
  await promise;
});

Deno.test("a toJSON that never ends has a depth", () => {
  class Again {
    toJSON(): unknown {
      return { again: new Again() };
    }
  }
  throws(() => toJson(new Again()), /nested deeper than 100 levels/);
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
