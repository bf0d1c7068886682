"""Requests whose programs are compiled before any approval."""

import pytest

from pml_analysis.analysis import NO_CAPABILITIES, Analysis, Rejection
from pml_analysis.check_results import CompileError
from pml_analysis.text.limits import Limits
from pml_analyzer.adapters.inline_engine import analyzed
from pml_analyzer.application.compile_check import CompileCheck
from pml_analyzer.ports import WorkersUnavailable
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from services.analyzer.tests.support.handling import handled
from services.analyzer.tests.support.library import READ_JSON, meaning
from services.analyzer.tests.support.memory import MemoryCapabilities, MemoryCatalog, MemoryCompiler
from services.analyzer.tests.support.programs import TOOLS
from services.analyzer.tests.unit.test_on_execution_requested import NONE, SCOPE, requested

CATALOG = MemoryCatalog({str(SCOPE): TOOLS})
CALLING = 'return await mcp.fs.read({ path: "a" });'


def analysis(code: str = CALLING) -> Analysis:
    outcome = analyzed(requested(code), TOOLS, NO_CAPABILITIES, Limits())
    assert isinstance(outcome, Analysis)
    return outcome


async def test_what_runs_is_compiled() -> None:
    compiler = MemoryCompiler()
    (event,) = await handled(requested(CALLING), CATALOG, NONE, compiler=compiler)
    assert isinstance(event, ExecutionAnalyzed)
    assert compiler.asked == [event.instrumented]


async def test_a_program_that_does_not_compile_is_a_syntax_rejection() -> None:
    compiler = MemoryCompiler({"fs.read": CompileError(1, 7, "no such thing")})
    (event,) = await handled(requested(CALLING), CATALOG, NONE, compiler=compiler)
    assert isinstance(event, AnalysisRejected)
    assert event.kind == "syntax"
    (told,) = event.diagnostics
    assert (told.line, told.column) == (1, 8)
    assert told.message == "The program does not compile: no such thing."


async def test_what_instrumentation_breaks_is_not_the_authors_fault() -> None:
    compiler = MemoryCompiler({"__pml.at": CompileError(1, 7, "no such thing")})
    (event,) = await handled(requested(CALLING), CATALOG, NONE, compiler=compiler)
    assert isinstance(event, AnalysisRejected)
    assert event.kind == "rejected"
    assert "please report it" in event.diagnostics[0].message


async def test_a_capability_that_does_not_compile_stops_its_caller() -> None:
    compiler = MemoryCompiler({"JSON.parse": CompileError(1, 7, "no such thing")})
    capabilities = MemoryCapabilities({str(SCOPE): [meaning("fs_read_json", READ_JSON)]})
    program = "return await capabilities.fs_read_json({});"
    (event,) = await handled(requested(program), CATALOG, capabilities, compiler=compiler)
    assert isinstance(event, AnalysisRejected)
    assert "which does not compile: no such thing" in event.diagnostics[0].message
    assert len(compiler.asked) == 2


async def test_a_program_that_is_rejected_anyway_is_not_compiled() -> None:
    compiler = MemoryCompiler()
    await handled(requested("const = 1;"), CATALOG, NONE, compiler=compiler)
    assert compiler.asked == []


async def test_without_a_compiler_the_request_waits() -> None:
    compiler = MemoryCompiler()
    compiler.is_away = True
    with pytest.raises(WorkersUnavailable):
        await handled(requested(CALLING), CATALOG, NONE, compiler=compiler)


async def test_a_text_is_compiled_once_until_others_are_asked_for() -> None:
    compiler = MemoryCompiler({"2": CompileError(1, 0, "no")})
    check, texts = CompileCheck(compiler, max_entries=4), [f"return {n};" for n in (1, 2)]
    for _ in range(2):
        for code in texts:
            outcome = await check.of(SCOPE, analysis(code))
            assert isinstance(outcome, Rejection) == ("2" in code)
    assert compiler.asked == [texts[0], texts[1]]
    for n in (3, 4, 5):
        await check.of(SCOPE, analysis(f"return {n};"))
    await check.of(SCOPE, analysis(texts[0]))
    assert compiler.asked.count(texts[0]) == 2


async def test_what_nobody_compiled_is_asked_for_again() -> None:
    compiler = MemoryCompiler()
    check, compiler.is_away = CompileCheck(compiler), True
    with pytest.raises(WorkersUnavailable):
        await check.of(SCOPE, analysis())
    compiler.is_away = False
    assert await check.of(SCOPE, analysis()) == analysis()
