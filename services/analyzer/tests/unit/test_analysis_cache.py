"""The cache of analyses."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

from pml_analysis.analysis import NO_CAPABILITIES, Analysis, Rejection
from pml_analysis.decision.capabilities import Library
from pml_analysis.text.limits import Limits
from pml_analyzer.adapters.inline_engine import InlineEngine
from pml_analyzer.application.analysis_cache import AnalysisCache
from pml_common.contracts.decision import DryRun, Policy, PolicyRule
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition

SCOPE, ELSEWHERE = Scope(org="acme", project="webapp"), Scope(org="rival", project="webapp")
TOOLS = (ToolDefinition(server="fs", name="read"),)
CODE = "return await mcp.fs.read({});"


def requested(code: str = CODE, **more: object) -> ExecutionRequested:
    workflow = uuid4()
    asked: dict[str, object] = {
        "scope": SCOPE,
        "event_id": workflow,
        "workflow_id": workflow,
        "principal": "agent-7",
        "code": code,
        "policy": Policy(),
        "requested_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return ExecutionRequested.model_validate(asked | more)


async def of(
    analyses: AnalysisCache,
    request: ExecutionRequested,
    tools: Sequence[ToolDefinition] = TOOLS,
    library: Library = NO_CAPABILITIES,
) -> Analysis | Rejection:
    return await analyses.of(request, tools, library, Limits())


async def test_a_program_asked_for_again_is_not_read_again() -> None:
    analyses = AnalysisCache(InlineEngine())
    assert await of(analyses, requested()) is await of(analyses, requested())


async def test_a_program_is_read_again_for_other_tools_be_they_equal() -> None:
    analyses, read_anew = AnalysisCache(InlineEngine()), (ToolDefinition(server="fs", name="read"),)
    first = await of(analyses, requested())
    again = await of(analyses, requested(), read_anew)
    assert again is not first
    assert await of(analyses, requested(), read_anew) is again


async def test_each_scope_policy_and_name_has_an_analysis_of_its_own() -> None:
    analyses = AnalysisCache(InlineEngine())
    denied = Policy(rules=(PolicyRule(pattern="fs:*", verdict="deny"),))
    first = await of(analyses, requested())
    for other in (
        requested(scope=ELSEWHERE),
        requested(policy=denied),
        requested(known_as=("fs:look",)),
    ):
        assert await of(analyses, other) is not first
    strict = await of(analyses, requested(policy=denied))
    assert isinstance(strict, Analysis)
    assert strict.decision.verdict == "deny"


async def test_dry_runs_and_programs_that_call_capabilities_are_read_every_time() -> None:
    analyses, library = AnalysisCache(InlineEngine()), Library({}, {})
    for request, known in (
        (requested(dry_run=DryRun()), NO_CAPABILITIES),
        (requested(), library),
    ):
        first = await of(analyses, request, library=known)
        assert await of(analyses, request, library=known) is not first


async def test_a_program_that_is_rejected_or_long_is_not_kept() -> None:
    analyses = AnalysisCache(InlineEngine())
    for code in ("const = 1;", f"return 1; // {'x' * 9000}"):
        assert await of(analyses, requested(code)) is not await of(analyses, requested(code))


async def test_of_many_programs_those_asked_for_last_are_kept() -> None:
    analyses = AnalysisCache(InlineEngine(), max_entries=2)
    one, two = [await of(analyses, requested(f"return {n};")) for n in (1, 2)]
    assert await of(analyses, requested("return 1;")) is one
    await of(analyses, requested("return 3;"))
    assert await of(analyses, requested("return 1;")) is one
    assert await of(analyses, requested("return 2;")) is not two
