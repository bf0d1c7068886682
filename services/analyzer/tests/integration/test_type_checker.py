"""The type checker: one suite for the real one and its fake, and tests of the real one alone."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_analysis.names.globals import FORBIDDEN, GLOBALS
from pml_checker.deno_checker import DenoChecker, deno_checker
from pml_checker.type_check import TypeChecker
from services.analyzer.tests.support.memory import MemoryChecker
from services.analyzer.tests.support.programs import analysed, tool
from services.analyzer.tests.support.type_checks import (
    COMMAND,
    ENDLESS,
    PATIENT,
    TOOLS,
    complaints,
    why_unchecked,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
async def deno() -> AsyncIterator[DenoChecker]:
    """A warm checker."""
    async with deno_checker(COMMAND, PATIENT) as checker:
        yield checker


@pytest.fixture(params=["twin", "deno"])
def checker(request: pytest.FixtureRequest, deno: DenoChecker) -> TypeChecker:
    """A checker; the fake is configured with the errors of the programs below."""
    if request.param == "deno":
        return deno
    faults = {
        "limit: '3'": "Type 'string' is not assignable to type 'number'.",
        "size": "Property 'size' does not exist on type '{ content: string; }'.",
    }
    return MemoryChecker(faults, [ENDLESS])


@pytest.mark.parametrize(
    "code",
    [
        'const { content } = await mcp.fs.read({ path: "x", limit: 3 });\nreturn content;',
        "await mcp.fs.read({ path: args.path });\nif (context.fast) return;\nreturn 1 // end",
        "const list = [];\nfor (const x of items) list.push(x);\nreturn list.map((x) => x.name);",
        "const mcp = { fs: 1 };\n{ let args = mcp.fs + 1; args = 2; }\nreturn mcp.fs;",
        "try { throw 1; } catch (error) { return error.message; }",
        "await new Promise((r) => setTimeout(r, 5));\n"
        "return new Promise<void>((r) => setTimeout(r));",
        "setTimeout(console.log, 5, 1, 'x');\nclearInterval(setInterval((n: number) => n, 5, 7));",
        "function f(x) { return x.y; }\nclass A { n: number; m() { return this.n; } }\nf(1);",
    ],
)
async def test_a_program_that_fits_its_tools_has_no_errors(checker: TypeChecker, code: str) -> None:
    assert await complaints(checker, code, ("items",)) == []


async def test_errors_are_told_on_the_author_s_lines(checker: TypeChecker) -> None:
    code = (
        "await mcp.fs.read({ path, limit: '3' });\r\n"
        "// 😀\u2028"
        'const it = /* 😀 */ await mcp.fs.read({ path: "😀" });\n'
        "return it.size;"
    )
    assert await complaints(checker, code, ("path",)) == [
        "1:27 Type 'string' is not assignable to type 'number'. (TypeScript 2322)",
        "4:11 Property 'size' does not exist on type '{ content: string; }'. "
        + ("(TypeScript 2322)" if isinstance(checker, MemoryChecker) else "(TypeScript 2339)"),
    ]


async def test_the_line_of_an_error_is_shown(checker: TypeChecker) -> None:
    (told,) = await checker.check("\nreturn (await mcp.fs.read({ path: '' })).size", (), TOOLS)
    assert told.source_line == "return (await mcp.fs.read({ path: '' })).size"


async def test_a_program_that_is_too_much_is_one_warning(checker: TypeChecker) -> None:
    if isinstance(checker, DenoChecker):
        async with deno_checker(replace(COMMAND, heap_mib=120), PATIENT) as small:
            found = await small.check(ENDLESS, (), TOOLS)
            assert await complaints(small, "return 1;") == []  # the next one is checked again
    else:
        found = await checker.check(ENDLESS, (), TOOLS)
    why_unchecked(found)


WRONG = {
    "a missing argument": ("await mcp.fs.read({});", "1:19", "Property 'path' is missing"),
    "no argument": ("await mcp.fs.read();", "1:14", "Expected 1 arguments"),
    "a misspelt argument": ("await mcp.fs.read({ path: '', limt: 1 });", "1:31", "'limt'"),
    "a tool by name": ('await mcp.call("fs:read", { path: 1 });', "1:29", "not assignable"),
    "a type that nobody declares": ("let x: Response; return x;", "1:8", "'Response'"),
    "what may not be there": (
        "const m = new Map<string, number>();\nreturn m.get('a').toFixed();",
        "2:8",
        "possibly 'undefined'",
    ),
}


@pytest.mark.parametrize(("code", "place", "message"), WRONG.values(), ids=WRONG)
async def test_what_does_not_fit_is_found(
    deno: DenoChecker, code: str, place: str, message: str
) -> None:
    (told,) = await complaints(deno, code)
    assert told.startswith(f"{place} ")
    assert message in told


async def test_comments_neither_load_files_nor_switch_the_check_off(deno: DenoChecker) -> None:
    code = (
        '/// <reference path="/etc/hosts" />\n// @ts-nocheck\n// @deno-types="./none.d.ts"\n'
        '/** @type {import("/etc/hosts.json")} @import { a } from "npm:none" */\n'
        "const a: string = 1;"
    )
    (told,) = await complaints(deno, code)
    assert told.startswith("5:7 Type 'number'")


async def test_calls_that_only_the_run_can_resolve_may_be_anything(deno: DenoChecker) -> None:
    code = (
        'const name = path + "x";\nawait mcp[name][name]({ a: 1 });\n'
        "await mcp.call(name, { a: 1 });\nawait mcp.call('cap:some:thing', args);\n"
        "return await capabilities.anything({ a: 1 });"
    )
    assert await complaints(deno, code, ("path",)) == []


async def test_a_capability_that_is_known_is_checked(deno: DenoChecker) -> None:
    known = {"fs_both": tool("cap:fs_both", "path"), "fs:both": tool("cap:fs:both", "path")}
    code = "capabilities.fs_both({});\nmcp.call('cap:fs:both', {});\ncapabilities.other({});"
    found = await deno.check(code, (), TOOLS, known)
    assert [(told.line, told.column) for told in found] == [(1, 22), (2, 25)]


def _globals_of_deno() -> list[str]:
    done = subprocess.run(
        [COMMAND.deno, "eval", "console.log(Object.getOwnPropertyNames(globalThis).join(' '))"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return done.stdout.split()


async def test_what_the_sandbox_has_is_there_and_what_it_lacks_is_not(deno: DenoChecker) -> None:
    there = sorted(GLOBALS - {"arguments"})
    assert await complaints(deno, "\n".join(f"void {name};" for name in there)) == []
    listed = await asyncio.to_thread(_globals_of_deno)
    language = {"Temporal", *(name for name in FORBIDDEN if name not in ("Deno", "process"))}
    lacking = sorted({*listed, "process"} - GLOBALS - language)
    assert {"Deno", "process", "ReadableStream"} <= set(lacking)
    for name in lacking:
        (told,) = await complaints(deno, f"void {name};")
        assert f"'{name}'" in told


async def test_scopes_do_not_see_each_other_however_many_ask_at_once(deno: DenoChecker) -> None:
    scopes = [(tool(f"server{n}:tool{n}", f"field{n}"),) for n in range(12)]

    def of(n: int, value: str) -> str:
        return f"await mcp.server{n}.tool{n}({{ field{n}: {value} }});"

    own = [complaints(deno, of(n, "1"), tools=scopes[n]) for n in range(12)]
    others = [complaints(deno, of(n, "''"), tools=scopes[n - 1]) for n in range(12)]
    told = await asyncio.gather(*own, *others)
    assert ["not assignable" in line for (line,) in told[:12]] == [True] * 12
    assert ["does not exist on type 'PmlMcp'" in line for (line,) in told[12:]] == [True] * 12


async def test_a_scope_whose_tools_change_is_checked_against_the_new_ones(
    deno: DenoChecker,
) -> None:
    before, after = (tool("fs:read", "path"),), (tool("fs:read", "file"),)
    code = "await mcp.fs.read({ path: '' });"
    for _ in range(2):
        assert await complaints(deno, code, tools=before) == []
        assert len(await complaints(deno, code, tools=after)) == 1


@pytest.mark.parametrize(
    "code",
    [
        "return [path, args.a, context['b'], params.c, input.d, args[k]];",
        "const { a = 1, ...rest } = params;\nif (b) return rest;\nreturn input ?? a;",
        "const f = (x) => x + y;\nfor (const z of items) await mcp.fs.read({ path: z + f(1) });",
        "return { path, n: typeof size, \\u0061b: \\u0061b };",
    ],
)
async def test_what_the_caller_gives_a_value_is_declared(deno: DenoChecker, code: str) -> None:
    assert await complaints(deno, code, analysed(code).free) == []
