"""A type check within the analysis of a request."""

from collections.abc import Mapping, Sequence

import pytest

from pml_analysis.typing.declarations import NONE
from pml_checker.type_check import TypeCheck
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import ToolDefinition
from services.analyzer.tests.support.handling import handled
from services.analyzer.tests.support.memory import MemoryCapabilities, MemoryCatalog, MemoryChecker
from services.analyzer.tests.support.programs import TOOLS
from services.analyzer.tests.unit.test_on_execution_requested import LIMITS, SCOPE, requested

NOBODY = MemoryCapabilities()
CODE = "await mcp.fs.read({ path, limit: '3' });"
WRONG = {"limit: '3'": "Type 'string' is not assignable to type 'number'."}


class Watched(MemoryChecker):
    """Records its arguments."""

    def __init__(self) -> None:
        super().__init__(WRONG)
        self.given: list[tuple[str, list[str], list[ToolDefinition]]] = []

    async def check(
        self,
        code: str,
        free: Sequence[str],
        tools: Sequence[ToolDefinition],
        capabilities: Mapping[str, ToolDefinition] = NONE,
    ) -> Sequence[Diagnostic]:
        self.given.append((code, list(free), list(tools)))
        return await super().check(code, free, tools, capabilities)


@pytest.fixture
def checker() -> Watched:
    return Watched()


@pytest.fixture
def catalog() -> MemoryCatalog:
    return MemoryCatalog({str(SCOPE): TOOLS})


async def test_a_type_error_is_told_with_the_analysis(
    checker: Watched, catalog: MemoryCatalog
) -> None:
    types = TypeCheck(checker, reject=False)
    (event,) = await handled(requested(CODE), catalog, MemoryCapabilities(), LIMITS, types=types)
    assert isinstance(event, ExecutionAnalyzed)
    assert [(d.severity, d.line, d.column) for d in event.diagnostics] == [("warning", 1, 27)]
    assert checker.given == [(CODE, ["path"], list(TOOLS))]


async def test_a_type_error_rejects_where_that_is_wished_for(
    checker: Watched, catalog: MemoryCatalog
) -> None:
    types = TypeCheck(checker, reject=True)
    (event,) = await handled(requested(CODE), catalog, MemoryCapabilities(), LIMITS, types=types)
    assert isinstance(event, AnalysisRejected)
    assert event.kind == "rejected"
    assert [(d.severity, d.line, d.column) for d in event.diagnostics] == [("error", 1, 27)]


async def test_a_program_that_was_not_checked_is_warned_about_only_where_errors_reject(
    catalog: MemoryCatalog,
) -> None:
    checker = MemoryChecker({}, ["mcp"])
    told: list[int] = []
    for reject in (False, True):
        types = TypeCheck(checker, reject=reject)
        (event,) = await handled(requested(CODE), catalog, NOBODY, LIMITS, types=types)
        assert isinstance(event, ExecutionAnalyzed)
        told.append(len(event.diagnostics))
    assert told == [0, 1]


async def test_without_a_type_error_nothing_changes(
    checker: Watched, catalog: MemoryCatalog
) -> None:
    request = requested("return await mcp.fs.read({ path });")
    types = TypeCheck(checker, reject=True)
    typed = await handled(request, catalog, MemoryCapabilities(), LIMITS, types=types)
    assert typed == await handled(request, catalog, MemoryCapabilities(), LIMITS)


async def test_a_program_that_is_rejected_anyway_is_not_looked_at(
    checker: Watched, catalog: MemoryCatalog
) -> None:
    types = TypeCheck(checker, reject=True)
    (event,) = await handled(
        requested("const = 1;"), catalog, MemoryCapabilities(), LIMITS, types=types
    )
    assert isinstance(event, AnalysisRejected)
    assert checker.given == []


async def test_a_program_is_checked_against_the_tools_it_was_understood_with(
    checker: Watched,
) -> None:
    catalog = MemoryCatalog({str(SCOPE): ()})
    await catalog.tools(SCOPE)
    catalog.known = {str(SCOPE): TOOLS}
    await handled(
        requested(CODE),
        catalog,
        MemoryCapabilities(),
        LIMITS,
        types=TypeCheck(checker, reject=False),
    )
    assert [tools for _, _, tools in checker.given] == [list(TOOLS)]
