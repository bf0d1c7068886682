"""The type checker: what the real one and its twin promise, and what only the real one can show."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pml_analyzer.adapters.deno_checker import CheckerLimits, DenoChecker, deno_checker
from pml_analyzer.adapters.deno_checker_process import CheckerCommand
from pml_analyzer.adapters.memory_checker import MemoryChecker
from pml_analyzer.domain.globals import FORBIDDEN, GLOBALS
from pml_analyzer.ports import TypeChecker
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import ToolDefinition
from pml_local.testing import eventually
from services.analyzer.tests.programs import analysed, schema, tool

pytestmark = pytest.mark.integration

COMMAND = CheckerCommand(str(Path(sys.executable).with_name("deno")))
PATIENT = CheckerLimits(patience_s=30)
TOOLS = (
    tool("fs:read", "path", gives=schema("content"), read_only=True, limit="number"),
    tool("fs:write", "path", "content"),
)
ENDLESS = 'type N<T extends any[]> = T["length"] extends 1e6 ? T : N<[...T, 1]>;let q: N<[]> = 1;'
"""Types that take the compiler seconds, then more memory than it has."""


@pytest.fixture(scope="module")
async def deno() -> AsyncIterator[DenoChecker]:
    """A warm checker."""
    async with deno_checker(COMMAND, PATIENT) as checker:
        yield checker


def pid_of(checker: DenoChecker) -> int | None:
    """The id of its process, once that is warm."""
    return checker.process.pid if checker.process is not None else None


@pytest.fixture(params=["twin", "deno"])
def checker(request: pytest.FixtureRequest, deno: DenoChecker) -> TypeChecker:
    """A checker, with what the programs below have wrong told to the twin."""
    if request.param == "deno":
        return deno
    faults = {
        "limit: '3'": "Type 'string' is not assignable to type 'number'.",
        "size": "Property 'size' does not exist on type '{ content: string; }'.",
    }
    return MemoryChecker(faults, [ENDLESS])


async def complaints(
    checker: TypeChecker,
    code: str,
    free: Sequence[str] = (),
    tools: Sequence[ToolDefinition] = TOOLS,
) -> list[str]:
    """`line:column message` of every error; there may be nothing else."""
    found = await checker.check(code, free, tools)
    assert {told.severity for told in found} <= {"error"}, found
    return [f"{told.line}:{told.column} {told.message}" for told in found]


@pytest.mark.parametrize(
    "code",
    [
        'const { content } = await mcp.fs.read({ path: "x", limit: 3 });\nreturn content;',
        "await mcp.fs.read({ path: args.path });\nif (context.fast) return;\nreturn 1 // end",
        "const list = [];\nfor (const x of items) list.push(x);\nreturn list.map((x) => x.name);",
        "const mcp = { fs: 1 };\n{ let args = mcp.fs + 1; args = 2; }\nreturn mcp.fs;",
        "try { throw 1; } catch (error) { return error.message; }",
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
    _is_unchecked(found)


def _is_unchecked(found: Sequence[Diagnostic]) -> str:
    (told,) = found
    assert (told.severity, told.line, told.column) == ("warning", 1, 1)
    assert told.message.startswith("Types were not checked: ")
    return told.message


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
        timeout=30,
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


async def test_a_process_that_dies_is_replaced() -> None:
    async with deno_checker(COMMAND, PATIENT) as checker:
        assert await complaints(checker, "return 1;") == []
        first = pid_of(checker)
        assert first is not None
        os.kill(first, signal.SIGKILL)
        message = _is_unchecked(await checker.check("return 1;", (), TOOLS))
        assert message == "Types were not checked: the checker's process ended."
        assert await complaints(checker, "return 1;") == []
        assert pid_of(checker) != first
        assert await checker.health() is None


async def test_a_program_that_takes_too_long_costs_its_process_and_delays_nobody_for_good() -> None:
    async with deno_checker(COMMAND, replace(PATIENT, patience_s=0.4)) as checker:
        first = await eventually(lambda: pid_of(checker), within=30)
        message = _is_unchecked(await checker.check(ENDLESS, (), TOOLS))
        assert message == "Types were not checked: the checker did not answer within 0.4 s."
        assert await eventually(lambda: pid_of(checker), within=30) != first

        async def checked() -> bool:
            found = await checker.check("const a: string = 1;", (), TOOLS)
            return [told.severity for told in found] == ["error"]

        assert await eventually(checked, within=30)


async def test_a_worn_process_is_replaced() -> None:
    async with deno_checker(COMMAND, replace(PATIENT, checks=2)) as checker:
        pids: set[int] = set()
        for _ in range(3):
            pids.add(await eventually(lambda: pid_of(checker), within=30))
            assert len(await complaints(checker, "const a: string = 1;")) == 1
        assert len(pids) == 3


async def test_a_checker_that_cannot_start_says_so_at_once() -> None:
    async with deno_checker(CheckerCommand("/nowhere/deno"), PATIENT) as checker:
        assert "cannot be started" in await eventually(checker.health)
        message = _is_unchecked(await checker.check("return 1;", (), TOOLS))
        assert "/nowhere/deno cannot be started" in message


async def test_what_is_no_language_server_is_not_waited_for() -> None:
    for program in ("true", "cat"):
        command = CheckerCommand(program)
        async with deno_checker(command, replace(PATIENT, rest_s=60)) as checker:
            assert await eventually(checker.health, within=10)


async def test_nothing_is_left_of_it() -> None:
    async with deno_checker(COMMAND, PATIENT) as checker:
        await complaints(checker, "return 1;")
        pid = pid_of(checker)
        assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    async with deno_checker(COMMAND, PATIENT):
        pass  # ended while it starts


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
