/**
 * Joins several modules into one, because a Worker without read permission can load only the code
 * it is given: imports between the parts are dropped, exports become plain declarations.
 */
export function bundle(parts: readonly string[]): string {
  return parts
    .map((text) => text.replaceAll(/^import [^;]*;$/gm, "").replaceAll(/^export /gm, ""))
    .join("\n");
}
