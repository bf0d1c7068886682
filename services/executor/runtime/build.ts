/**
 * Prints the Worker's code as JavaScript. Runs once per executor: transpiling in every Worker and
 * process would cost each 5 ms. Types turn into spaces, so positions in the code stay.
 */
import { stripTypeScriptTypes } from "node:module";
import { bundle } from "./bundle.ts";
import capabilities from "./worker/capabilities.ts" with { type: "text" };
import clock from "./worker/clock.ts" with { type: "text" };
import console_ from "./worker/console.ts" with { type: "text" };
import deliveries from "./worker/deliveries.ts" with { type: "text" };
import failure from "./worker/failure.ts" with { type: "text" };
import globals from "./worker/globals.ts" with { type: "text" };
import intrinsics from "./worker/intrinsics.ts" with { type: "text" };
import jsonSafe from "./worker/json_safe.ts" with { type: "text" };
import main from "./worker/main.ts" with { type: "text" };
import outbox from "./worker/outbox.ts" with { type: "text" };
import primordials from "./worker/primordials.ts" with { type: "text" };
import random from "./worker/random.ts" with { type: "text" };
import reports from "./worker/reports.ts" with { type: "text" };
import tally from "./worker/tally.ts" with { type: "text" };
import timers from "./worker/timers.ts" with { type: "text" };
import tools from "./worker/tools.ts" with { type: "text" };
import callRows from "./worker/call_rows.ts" with { type: "text" };

const PARTS = [
  primordials,
  jsonSafe,
  clock,
  timers,
  random,
  console_,
  failure,
  tools,
  capabilities,
  tally,
  reports,
  callRows,
  outbox,
  deliveries,
  intrinsics,
  globals,
  main,
];

/** Bundles the parts, blanks out types, and empties lines of blanks. */
export function build(parts: readonly string[]): string {
  return stripTypeScriptTypes(bundle(parts)).replaceAll(/^[ \t]+$/gm, "");
}

if (import.meta.main) Deno.stdout.writeSync(new TextEncoder().encode(build(PARTS)));
