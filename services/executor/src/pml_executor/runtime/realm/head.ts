/** The text around a program in a realm; both sides of the realm know it. */
import { NAMES } from "../worker/module_text.ts";

/**
 * Strict from the first character on: a sloppy function could read its caller. The function gives
 * the program no `this`; the inner block lets it declare names of its own over the bound ones.
 */
export const HEAD = `"use strict";(function(){return async(${NAMES})=>{{`;
export const TAIL = "\n}}})()";
