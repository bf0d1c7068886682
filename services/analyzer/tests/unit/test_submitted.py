"""Requests for programs that a client wrote: which text is stored, run and told of."""

from pml_analysis.check_results import CompileError
from pml_analyzer.adapters.inline_engine import InlineEngine
from pml_analyzer.application.analysis_cache import AnalysisCache
from pml_checker.type_check import TypeCheck
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from services.analyzer.tests.support.handling import handled
from services.analyzer.tests.support.memory import (
    MemoryCatalog,
    MemoryChecker,
    MemoryCompiler,
)
from services.analyzer.tests.support.programs import TOOLS, analysed
from services.analyzer.tests.unit import test_analysis_cache as cached
from services.analyzer.tests.unit.test_on_execution_requested import LIMITS, NONE, SCOPE, requested

CATALOG = MemoryCatalog({str(SCOPE): TOOLS})
READ = 'await mcp.fs.read({ path: "a", limit: 1 })'
FENCED = f"Here:\r\n```ts\r\nasync () => {READ}\r\n```\r\n"


async def analyzed(code: str, *, submitted: bool = True, **more: object) -> ExecutionAnalyzed:
    request = requested(code).model_copy(update={"submitted": submitted, **more})
    (event,) = await handled(request, CATALOG, NONE)
    assert isinstance(event, ExecutionAnalyzed)
    return event


async def test_what_is_stored_is_what_was_analysed() -> None:
    event = await analyzed(FENCED)
    assert event.code == f"return await (async () => {READ})()"
    assert event.submitted_code == FENCED
    assert len(event.notices) == 2
    assert event.capability.code_hash == analysed(event.code).code_hash
    assert event.structure.nodes[0].line == 3


async def test_a_program_that_is_not_changed_is_told_of_as_before() -> None:
    code = f"return {READ};"
    event = await analyzed(code)
    assert (event.code, event.submitted_code, event.notices) == (code, None, ())
    assert event == await analyzed(code, submitted=False)


async def test_a_stored_program_runs_as_it_is_stored() -> None:
    code = f"async () => {READ}"
    event = await analyzed(code, submitted=False, known_as=("fs:read_it",))
    assert (event.code, event.submitted_code, event.notices) == (code, None, ())


async def test_an_error_of_the_compiler_is_at_the_authors_column() -> None:
    request = requested(FENCED).model_copy(update={"submitted": True})
    at = f"return await (async () => {READ}".index("read")
    compiler = MemoryCompiler({"fs.read": CompileError(3, at, "no such thing")})
    (event,) = await handled(request, CATALOG, NONE, compiler=compiler)
    assert isinstance(event, AnalysisRejected)
    (told,) = event.diagnostics
    assert (told.line, told.column) == (3, f"async () => {READ}".index("read") + 1)
    assert told.source_line == f"async () => {READ}"


async def test_a_type_error_is_at_the_authors_column() -> None:
    types = TypeCheck(MemoryChecker({"limit: 1": "No such limit."}), reject=False)
    request = requested(FENCED).model_copy(update={"submitted": True})
    (event,) = await handled(request, CATALOG, NONE, LIMITS, types=types)
    assert isinstance(event, ExecutionAnalyzed)
    (told,) = event.diagnostics
    assert (told.line, told.column) == (3, f"async () => {READ}".index("limit") + 1)
    assert told.source_line == f"async () => {READ}"


async def test_a_submitted_program_has_an_analysis_of_its_own() -> None:
    analyses = AnalysisCache(InlineEngine())
    stored, sent = cached.requested(cached.CODE), cached.requested(cached.CODE, submitted=True)
    first, again = await cached.of(analyses, stored), await cached.of(analyses, sent)
    assert first is not again
    assert await cached.of(analyses, sent) is again
