"""One request for analysis, and its events."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from pml_analysis.text.limits import Limits
from pml_analyzer.entrypoints.bus.on_registry_changes import on_catalog_changed
from pml_analyzer.ports import CatalogUnavailable
from pml_common.contracts import ids
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.decision import Policy
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.registry import CatalogChanged
from pml_common.contracts.scope import Scope
from pml_common.contracts.source import FromTool
from services.analyzer.tests.support.handling import handled
from services.analyzer.tests.support.memory import MemoryCapabilities, MemoryCatalog
from services.analyzer.tests.support.programs import SOURCES_EXAMPLE, TOOLS, analysed

SCOPE = Scope(org="acme", project="webapp")
LIMITS = Limits()
NONE = MemoryCapabilities()


def requested(code: str, policy: Policy | None = None) -> ExecutionRequested:
    workflow = ids.workflow_id(SCOPE, "agent-7", code[:50])
    return ExecutionRequested(
        scope=SCOPE,
        event_id=ids.effect_id(workflow, "execution-requested"),
        workflow_id=workflow,
        principal="agent-7",
        code=code,
        intent="make sure it exists",
        name="fs:ensure",
        policy=policy or Policy(),
        requested_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


async def _analyzed(request: ExecutionRequested) -> ExecutionAnalyzed:
    (event,) = await handled(request, MemoryCatalog({str(SCOPE): TOOLS}), NONE, LIMITS)
    assert isinstance(event, ExecutionAnalyzed)
    return event


async def test_a_program_that_is_understood_is_told_in_full() -> None:
    request = requested(SOURCES_EXAMPLE)
    event = await _analyzed(request)
    analysis = analysed(SOURCES_EXAMPLE)
    assert event.structure == analysis.structure
    assert event.decision == analysis.decision
    assert event.instrumented == analysis.instrumented
    assert event.parameters_schema == analysis.parameters_schema
    assert (event.code, event.intent, event.principal) == (
        request.code,
        request.intent,
        request.principal,
    )
    assert event.workflow_id == request.workflow_id
    assert event.capability.name == "fs:ensure"
    assert event.capability.code_hash == analysis.code_hash
    assert event.capability.capability_id == ids.capability_id(SCOPE, analysis.code_hash)


async def test_the_source_of_the_request_is_told_and_changes_nothing_else() -> None:
    request = requested(SOURCES_EXAMPLE)
    source = FromTool(tool_id="fs:read", default_args={"path": "/"})
    told = await _analyzed(request.model_copy(update={"source": source}))
    plain = await _analyzed(request)
    assert (told.source, plain.source) == (source, None)
    assert told.model_copy(update={"source": None}) == plain


async def test_the_policy_of_the_request_decides() -> None:
    strict = Policy(read_only="deny")
    assert (await _analyzed(requested(SOURCES_EXAMPLE, strict))).decision.verdict == "deny"


async def test_two_texts_of_one_behaviour_are_one_capability() -> None:
    one = await _analyzed(requested("const a = 1; return a;"))
    other = await _analyzed(requested("const b = 1 // one\nreturn b"))
    assert one.capability == other.capability


@pytest.mark.parametrize("code", [SOURCES_EXAMPLE, "const = 1;"])
async def test_a_redelivery_states_the_same_facts(code: str) -> None:
    catalog = MemoryCatalog({str(SCOPE): TOOLS})
    first = await handled(requested(code), catalog, NONE, LIMITS)
    again = await handled(requested(code), catalog, NONE, LIMITS)
    assert first == again
    assert first[0].message_id == again[0].message_id


async def test_a_program_that_cannot_run_is_rejected_with_its_diagnostics() -> None:
    request = requested("const = 1;")
    (event,) = await handled(request, MemoryCatalog(), NONE, LIMITS)
    assert isinstance(event, AnalysisRejected)
    assert event.workflow_id == request.workflow_id
    assert event.event_id == ids.effect_id(request.event_id, "analysis-rejected")
    assert event.diagnostics[0].line == 1
    assert event.kind == "syntax"


async def test_the_limit_of_the_settings_holds() -> None:
    (event,) = await handled(requested("return 1;"), MemoryCatalog(), NONE, Limits(source_bytes=4))
    assert isinstance(event, AnalysisRejected)
    assert "the limit is 4" in event.diagnostics[0].message


async def test_a_tool_that_is_newer_than_the_copy_is_found() -> None:
    catalog = MemoryCatalog({str(SCOPE): ()})
    await catalog.tools(SCOPE)
    catalog.known = {str(SCOPE): TOOLS}
    (event,) = await handled(requested(SOURCES_EXAMPLE), catalog, NONE, LIMITS)
    assert isinstance(event, ExecutionAnalyzed)


async def test_a_tool_that_nobody_has_is_rejected() -> None:
    (event,) = await handled(
        requested("mcp.fs.raed({});"), MemoryCatalog({str(SCOPE): TOOLS}), NONE, LIMITS
    )
    assert isinstance(event, AnalysisRejected)
    assert "Did you mean fs:read?" in event.diagnostics[0].message


async def test_without_the_registry_the_request_waits() -> None:
    catalog = MemoryCatalog()
    catalog.known = None
    with pytest.raises(CatalogUnavailable):
        await handled(requested("return 1;"), catalog, NONE, LIMITS)


async def test_a_change_of_the_catalogue_makes_the_copy_be_read_again() -> None:
    catalog = MemoryCatalog({str(SCOPE): ()})
    await catalog.tools(SCOPE)
    catalog.known = {str(SCOPE): TOOLS}
    changed = CatalogChanged(scope=SCOPE, event_id=UUID(int=1), server="fs")
    for _ in range(2):
        await on_catalog_changed(changed, catalog)
    assert list(await catalog.tools(SCOPE)) == list(TOOLS)
