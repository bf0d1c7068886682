import { strictEqual } from "node:assert";
import { bundle } from "./bundle.ts";

Deno.test("parts become one module", () => {
  const parts = [
    "export const one = 1;",
    'import { one } from "./one.ts";\nimport {\n  a,\n  b,\n} from "./ab.ts";\nexport function two() {\n  return one;\n}',
  ];
  strictEqual(
    bundle(parts),
    "const one = 1;\n\n\nfunction two() {\n  return one;\n}",
  );
});
