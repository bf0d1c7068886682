/**
 * Makes one module of several, because a Worker without read permission can load only what it is
 * handed: imports between the parts go, exports become plain declarations.
 */
export function bundle(parts: readonly string[]): string {
  return parts
    .map((text) => text.replaceAll(/^import [^;]*;$/gm, "").replaceAll(/^export /gm, ""))
    .join("\n");
}
