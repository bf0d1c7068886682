/** Realms whose code is changed, for tests of what each of their rules keeps out. */
import { notStrictEqual, ok, strictEqual } from "node:assert";
import { buildInner, buildOuter } from "../build.ts";
import type { Post, Realms } from "./outer.ts";

export type Change = [from: string, to: string];
export type Said = Parameters<Post>[0][];

export interface Sides {
  inner?: Change[];
  outer?: Change[];
}

export function changed(text: string, changes: Change[] = []): string {
  for (const [from, to] of changes) {
    ok(text.includes(from), `the code has no ${from}`);
    text = text.replaceAll(from, () => to);
  }
  return text;
}

/** Runs `body` with realms of the changed code in this process; `rejections` pass theirs on. */
export async function withRealms<T>(
  sides: Sides,
  body: (realms: Realms, said: Said) => Promise<T>,
): Promise<T> {
  const text = `${changed(buildOuter(), sides.outer)}\nexport { Realms };`;
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const { Realms: Changed } = await import(url);
  const said: Said = [];
  const realms: Realms = new Changed(changed(buildInner(), sides.inner), (data: Said[0]) => {
    said.push(data);
  });
  const heard = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    realms.rejected(event.reason);
  };
  addEventListener("unhandledrejection", heard);
  try {
    return await body(realms, said);
  } finally {
    await realms.end();
    removeEventListener("unhandledrejection", heard);
    URL.revokeObjectURL(url);
  }
}

export const order = (code: string) =>
  JSON.stringify({
    kind: "run",
    code,
    capabilities: [],
    args: {},
    seed: "0".repeat(32),
    now: 1_000,
    past: 0,
  });

export const later = (ms: number) => new Promise((then) => setTimeout(then, ms));

/** Waits until something was said, in bounded time. */
export async function until(said: Said, count = 1): Promise<void> {
  for (let i = 0; i < 500 && said.length < count; i++) await later(1);
}

/** Runs one program and returns its value, or what else was said. */
export function valueOf(code: string, sides: Sides = {}): Promise<unknown> {
  return withRealms(sides, async (realms, said) => {
    realms.receive(order(code));
    await until(said);
    const end = said.at(-1);
    const message = typeof end === "string" ? JSON.parse(end.split("\n").at(-1)!) : end;
    return message?.kind === "returned" ? message.value : message;
  });
}

export function rule(name: string, body: () => Promise<void>): void {
  Deno.test({ name, fn: body, sanitizeOps: false, sanitizeResources: false });
}

/** States that a program returns "closed", and something else or nothing without a rule. */
export function closed(name: string, code: string, without: Sides): void {
  rule(name, async () => {
    strictEqual(await valueOf(code), "closed");
    notStrictEqual(await valueOf(code, without), "closed");
  });
}

/** Starts the standing Worker; returns its first words, and those after a program. */
export async function standing(text: string, code: string): Promise<unknown[]> {
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module" });
  const { port1, port2 } = new MessageChannel();
  const said: unknown[] = [];
  worker.onerror = (event) => {
    event.preventDefault();
    said.push("lost");
  };
  port1.onmessage = ({ data }) => said.push(data);
  worker.postMessage(null, [port2]);
  try {
    await until(said as Said);
    port1.postMessage(order(code));
    await until(said as Said, 2);
    await later(5);
    return said;
  } finally {
    worker.terminate();
    port1.close();
    URL.revokeObjectURL(url);
  }
}
