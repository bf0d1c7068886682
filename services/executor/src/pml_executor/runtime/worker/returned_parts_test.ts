import { deepStrictEqual, strictEqual } from "node:assert";
import { ReturnedParts } from "./returned_parts.ts";

const part = (node: string) => ({ node, path: ["a", 0], text: "r.a[0]", line: 2, column: 8 });

Deno.test("a part that is undefined where it is returned gave the program's value", () => {
  const parts = new ReturnedParts();
  strictEqual(parts.note(part("n1"), undefined), undefined);
  deepStrictEqual(parts.of(undefined), part("n1"));
});

Deno.test("a part that is there gave no undefined value", () => {
  for (const value of [null, 0, "", false, { a: undefined }]) {
    const parts = new ReturnedParts();
    strictEqual(parts.note(part("n1"), value), value);
    strictEqual(parts.of(undefined), null);
  }
});

Deno.test("the last part counts, and only where the program's value is undefined", () => {
  const parts = new ReturnedParts();
  parts.note(part("n1"), undefined);
  parts.note(part("n2"), undefined);
  parts.note(part("n3"), 1);
  deepStrictEqual(parts.of(undefined), part("n2"));
  strictEqual(parts.of(null), null);
  strictEqual(parts.of(1), null);
});
