import { deepStrictEqual, notDeepStrictEqual, ok, throws } from "node:assert";
import { cryptoOf, Random } from "./random.ts";

const SEED = "0123456789abcdef0123456789abcdef";

function seeded(seed: string): Random {
  const random = new Random();
  random.begin(seed);
  return random;
}

function draws(seed: string): unknown[] {
  const random = seeded(seed);
  const { randomUUID, getRandomValues } = cryptoOf(random);
  return [random.fraction(), randomUUID(), [...getRandomValues(new Uint16Array(4))]];
}

Deno.test("the same seed draws the same, another seed something else", () => {
  deepStrictEqual(draws(SEED), draws(SEED));
  for (let i = 0; i < SEED.length; i++) {
    const other = SEED.slice(0, i) + (SEED[i] === "f" ? "0" : "f") + SEED.slice(i + 1);
    notDeepStrictEqual(draws(other), draws(SEED));
  }
});

Deno.test("fractions fill the unit interval", () => {
  const random = seeded(SEED);
  const tenths = new Array(10).fill(0);
  for (let i = 0; i < 100_000; i++) {
    const value = random.fraction();
    ok(value >= 0 && value < 1);
    tenths[Math.floor(value * 10)]++;
  }
  ok(tenths.every((count) => count > 9_500 && count < 10_500), String(tenths));
});

Deno.test("identifiers are of version 4", () => {
  const random = seeded(SEED);
  const seen = new Set(Array.from({ length: 100 }, () => random.uuid()));
  ok(seen.size === 100);
  for (const id of seen) {
    ok(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id));
  }
});

Deno.test("random bytes have a limit", () => {
  const { getRandomValues } = cryptoOf(seeded(SEED));
  throws(() => getRandomValues(new Uint8Array(65_537)), /65536 bytes at most/);
  throws(() => getRandomValues(null as never), /needs a typed array/);
});
