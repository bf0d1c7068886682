/**
 * Prints two texts of JavaScript, as a list: the code of a Worker for one program, and that of the
 * standing Worker of realms. Runs once per executor: transpiling in every Worker and process would
 * cost each 5 ms. Types turn into spaces, so positions in the code stay.
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
import lost from "./worker/lost.ts" with { type: "text" };
import main from "./worker/main.ts" with { type: "text" };
import moduleText from "./worker/module_text.ts" with { type: "text" };
import outbox from "./worker/outbox.ts" with { type: "text" };
import ownGlobals from "./worker/own_globals.ts" with { type: "text" };
import primordials from "./worker/primordials.ts" with { type: "text" };
import random from "./worker/random.ts" with { type: "text" };
import returnedParts from "./worker/returned_parts.ts" with { type: "text" };
import reports from "./worker/reports.ts" with { type: "text" };
import tally from "./worker/tally.ts" with { type: "text" };
import timers from "./worker/timers.ts" with { type: "text" };
import program from "./worker/program.ts" with { type: "text" };
import tools from "./worker/tools.ts" with { type: "text" };
import unawaited from "./worker/unawaited.ts" with { type: "text" };
import web from "./worker/web.ts" with { type: "text" };
import callRows from "./worker/call_rows.ts" with { type: "text" };
import head from "./realm/head.ts" with { type: "text" };
import inner from "./realm/inner.ts" with { type: "text" };
import outer from "./realm/outer.ts" with { type: "text" };
import probes from "./realm/probes.ts" with { type: "text" };
import realmMain from "./realm/main.ts" with { type: "text" };
import realmWeb from "./realm/web.ts" with { type: "text" };
import symbols from "./realm/symbols.ts" with { type: "text" };

/** The parts that a Worker for one program and a realm have in common. */
const COMMON = [
  moduleText,
  lost,
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
  unawaited,
  returnedParts,
  outbox,
  intrinsics,
  globals,
  ownGlobals,
  program,
];
const WORKER = [primordials, web, ...COMMON, deliveries, main];
const INNER = [primordials, realmWeb, ...COMMON, head, symbols, inner];
/** Of the standing Worker; no program runs beside it, so it needs no captured intrinsics. */
const OUTER = [primordials, web, moduleText, deliveries, head, outer, probes];

/** Bundles the parts, blanks out types, and empties lines of blanks. */
export function build(parts: readonly string[]): string {
  return stripTypeScriptTypes(bundle(parts)).replaceAll(/^[ \t]+$/gm, "");
}

/** Returns the code of a Worker for one program. */
export function buildWorker(): string {
  return build(WORKER);
}

/** Returns the inner side of a realm, a script whose value is its function `io`. */
export function buildInner(): string {
  return `"use strict";(()=>{${build(INNER)}\nreturn io;})()`;
}

/** Returns the outer side of realms, without an entry point. */
export function buildOuter(): string {
  const modules =
    'import * as vm from "node:vm";\nimport { stripTypeScriptTypes } from "node:module";\n';
  return modules + build(OUTER);
}

/** Returns the code of the standing Worker of realms. */
export function buildRealm(inner = buildInner(), outer = buildOuter()): string {
  return `${outer}\nconst INNER = ${JSON.stringify(inner)};\n${build([realmMain])}`;
}

if (import.meta.main) {
  const texts = new TextEncoder().encode(JSON.stringify([buildWorker(), buildRealm()]));
  for (let written = 0; written < texts.length;) {
    written += Deno.stdout.writeSync(texts.subarray(written));
  }
}
