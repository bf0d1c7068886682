/** The text around programs, and the names of the modules that are made of them. */

/** The names bound in a program, parameters of the function that is made of its text. */
export const NAMES = "mcp,capabilities,args,context,console,__pml";

/** Returns the start of the URL of a program's or a capability's module, unlike the Worker's. */
export function moduleHead(capability: number | null): string {
  return `data:application/typescript${capability === null ? "" : `;capability=${capability}`},`;
}
