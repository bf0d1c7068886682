"""Programs compiled by the real Deno: what it refuses, where, and that it runs none."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_analysis.check_results import CompileError
from pml_analyzer.adapters.deno_compiler import DenoCompiler, deno_compiler
from pml_analyzer.adapters.worker_pool import WorkerLimits
from pml_analyzer.ports import WorkersUnavailable
from pml_common.contracts.scope import Scope
from services.analyzer.tests.support.recorder import DENO

pytestmark = pytest.mark.integration

SCOPE, RIVAL = Scope(org="acme", project="webapp"), Scope(org="rival", project="webapp")
PATIENT = WorkerLimits(deadline_s=60)
MONSTER = f"return {'<T>(' * 40}1{')' * 40};"
"""The transpiler's time for it doubles with each bracket."""


@asynccontextmanager
async def compiling(limits: WorkerLimits = PATIENT) -> AsyncGenerator[DenoCompiler]:
    async with deno_compiler(str(DENO), limits) as compiler:
        yield compiler


REFUSED = {
    "declared twice": ("let a = 1;\n\tlet b, a;", 2, 8, "Identifier 'a' has already been declared"),
    "beyond the plane": ("/*\U0001f600*/ let y; let y;", 1, 18, "Identifier 'y' has already"),
    "after a type": ("const f = (a: number): number => { break; };", 1, 35, "Illegal break"),
    "after a rewrite": ("enum A { B }\nlet a; let a;", 2, 11, "Identifier 'a' has already been"),
    "a pattern": ("return /(/;", 1, 7, "Invalid regular expression: /(/: Unterminated group"),
    "no expression": ("\tlet x = ;", 1, 9, "Expression expected"),
    "a new target": ("new.target;", 1, 4, "new.target expression is not allowed here"),
    "a text": ("let \U0001f600 = '", 1, 4, "Expected"),
    "a label": ("x: for (;;) { continue y; }", 1, 23, "Undefined label 'y'"),
    "a name": ("let yield = 1;", 1, 4, "Unexpected strict mode reserved word"),
    "a template in a chain": ("a?.b`x`;", 1, 4, "Invalid tagged template on optional chain"),
    "an import": ('import a from "a";', 1, 0, "'import', and 'export' cannot be used outside"),
    "no end": ("{{{", 0, 0, "Unexpected end of input"),
}


@pytest.mark.parametrize(("code", "line", "units", "words"), REFUSED.values(), ids=list(REFUSED))
async def test_what_does_not_compile_is_told_where_and_why(
    code: str, line: int, units: int, words: str
) -> None:
    async with compiling() as compiler:
        found = await compiler.compile_error(SCOPE, code)
    assert found is not None
    assert (found.line, found.units) == (line, units)
    assert found.message.startswith(words)


COMPILED = {
    "types": "const a: number = 1 as number; return a satisfies number;",
    "an enumeration": "enum A { B } return A.B;",
    "names again": "let mcp = 1, args = 2; return mcp + args;",
    "a last comment": "return 1; // the end",
    "new names": "let \U0002ebf0, \U00010d50; return \U00010d50;",
    "patterns in a round": "for await (let [x] of [[1]]) { console.log(x); }",
    "nothing": "",
}


@pytest.mark.parametrize("code", COMPILED.values(), ids=list(COMPILED))
async def test_what_compiles_is_let_pass(code: str) -> None:
    async with compiling() as compiler:
        assert await compiler.compile_error(SCOPE, code) is None


async def test_nothing_is_run_even_what_leaves_its_function() -> None:
    """If it were run, the process would end at once, and its answer be lost."""
    leaving = "}}; Deno.exit(3); async () => {{"
    looping = "}}; for (;;) {} async () => {{"
    failing = "}}; let a; let a; Deno.exit(3); async () => {{"  # placed by loading
    async with compiling(replace(PATIENT, max_requests=100)) as compiler:
        assert await compiler.compile_error(SCOPE, leaving) is None
        assert await compiler.compile_error(SCOPE, looping) is None
        found = await compiler.compile_error(SCOPE, failing)
        assert found is not None
        assert "already been declared" in found.message


async def test_a_monster_is_refused_at_the_deadline_and_holds_up_no_other_scope() -> None:
    async with compiling(replace(PATIENT, deadline_s=1)) as compiler:
        monster = asyncio.create_task(compiler.compile_error(SCOPE, MONSTER))
        assert await compiler.compile_error(RIVAL, "return 1;") is None
        found = await monster
        assert found == CompileError(
            0, 0, "the compiler takes more than 1 s of processor time: make it simpler"
        )
        assert await compiler.compile_error(SCOPE, "return 1;") is None


async def test_what_ends_the_compiler_is_refused() -> None:
    deep = f"return {'() => {' * 20_000}{'}' * 20_000};"  # a stack that overflows
    async with compiling() as compiler:
        found = await compiler.compile_error(SCOPE, deep)
        assert found == CompileError(0, 0, "it ended the compiler, twice: make it simpler")
        assert await compiler.compile_error(SCOPE, "return 1;") is None


async def test_a_compiler_that_cannot_start_is_bad_health_and_no_verdict() -> None:
    async with deno_compiler("/nowhere/deno", PATIENT) as compiler:
        assert "/nowhere/deno cannot be started" in await eventually(compiler.health)
        with pytest.raises(WorkersUnavailable):
            await compiler.compile_error(SCOPE, "return 1;")
