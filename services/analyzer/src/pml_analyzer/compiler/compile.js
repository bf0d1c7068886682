// @ts-check
/**
 * Checks whether programs compile, without running them: each becomes the module that the sandbox
 * makes of it, and V8 compiles that module but never evaluates it.
 *
 * Over stdin and stdout: four bytes of length, big-endian, then a body. A request is a program, the
 * answer JSON: null, or the compile error with its position.
 */
import { stripTypeScriptTypes } from "node:module";
import { SourceTextModule } from "node:vm";

/** @typedef {{ line: number, units: number, message: string }} CompileError */

// Lines before and after the author's; otherwise what the sandbox's Worker has (worker/main.ts).
const NAMES = "mcp,capabilities,args,context,console,__pml";
const PRELUDE = `export default async(${NAMES})=>{{\n`;
const CODA = "\n}}";

const HEAD = 4;
const READ_BYTES = 65_536;
const TAB = 2; // columns, as Deno's transpiler counts
const MAX_MESSAGE = 600;
const LINE_END = /\r\n|[\n\r\u2028\u2029]/;

/** An export of no module: its importer is compiled, cannot be linked, and is not evaluated. */
const MISSING = `missing_${crypto.randomUUID().replaceAll("-", "")}`;
const UNLINKABLE = `\nexport { ${MISSING} } from "data:text/javascript,"`;

const PLACED = /^(?:SyntaxError: )?(.*?)(\n {2}\|[^]*?)?\s+at [a-z]+:[^\n]*:(\d+):(\d+)$/s;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Compiles both with types blanked and as the transpiler rewrites the program, which is what runs:
 * the transpiler accepts some texts that are no programs, and rewrites some to what V8 refuses.
 *
 * @param {string} code
 * @returns {Promise<CompileError | null>}
 */
async function compileError(code) {
  const text = PRELUDE + code + CODA;
  const plain = blanked(text);
  try {
    if (plain !== null) new SourceTextModule(plain);
  } catch (error) {
    return await placedByLoading(code, "javascript", plain ?? "", error);
  }
  let written;
  try {
    written = stripTypeScriptTypes(text, { mode: "transform" });
  } catch (error) {
    return placed(code, error);
  }
  try {
    new SourceTextModule(written);
  } catch (error) {
    return await placedByLoading(code, "typescript", text, error);
  }
  return null;
}

/**
 * Returns null where more than types must be rewritten (enumerations), and where the text is no
 * program; the transpiler has the better message then.
 *
 * @param {string} text
 */
function blanked(text) {
  try {
    return stripTypeScriptTypes(text);
  } catch {
    return null;
  }
}

/**
 * Only V8's errors of loading have a position.
 *
 * @param {string} code
 * @param {string} type
 * @param {string} text
 * @param {unknown} refused
 */
async function placedByLoading(code, type, text, refused) {
  try {
    await import(`data:application/${type},${encodeURIComponent(text + UNLINKABLE)}`);
  } catch (error) {
    const found = placed(code, error);
    const isOwn = found.line <= code.split(LINE_END).length;
    if (isOwn && !found.message.includes(MISSING)) return found;
  }
  return placed(code, refused);
}

/**
 * @param {string} code
 * @param {unknown} error
 * @returns {CompileError}
 */
function placed(code, error) {
  const text = messageOf(error);
  const found = PLACED.exec(text);
  if (found === null) return { line: 0, units: 0, message: text.slice(0, MAX_MESSAGE) };
  const [, message, shown, line, column] = found;
  const own = Number(line) - 1;
  const units = shown === undefined
    ? Number(column) - 1
    : unitsBefore(code.split(LINE_END)[own - 1] ?? "", Number(column) - 1);
  return { line: own, units, message: (message ?? "").slice(0, MAX_MESSAGE) };
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/**
 * UTF-16 units before a column of a line; the transpiler counts characters, tabs as more.
 *
 * @param {string} line
 * @param {number} columns
 */
function unitsBefore(line, columns) {
  let units = 0;
  for (const char of line) {
    if (columns <= 0) break;
    columns -= char === "\t" ? TAB : 1;
    units += char.length;
  }
  return units;
}

/** @param {Uint8Array} body */
function send(body) {
  const frame = new Uint8Array(HEAD + body.length);
  new DataView(frame.buffer).setUint32(0, body.length);
  frame.set(body, HEAD);
  for (let written = 0; written < frame.length;) {
    written += Deno.stdout.writeSync(frame.subarray(written));
  }
}

/**
 * @param {number} size
 * @returns {Promise<Uint8Array | null>} null at the end of the input
 */
async function read(size) {
  const body = new Uint8Array(size);
  for (let filled = 0; filled < size;) {
    const end = Math.min(size, filled + READ_BYTES);
    const more = await Deno.stdin.read(body.subarray(filled, end));
    if (more === null) return null;
    filled += more;
  }
  return body;
}

await compileError("const warm: number = 1; return warm");
send(new Uint8Array());
for (;;) {
  const head = await read(HEAD);
  const body = head && await read(new DataView(head.buffer).getUint32(0));
  if (body === null) break;
  send(encoder.encode(JSON.stringify(await compileError(decoder.decode(body)))));
}
