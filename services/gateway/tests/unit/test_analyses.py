"""Analyses of programs before their requests are stored: asked for once, used again."""

from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import pytest
from typing_extensions import override

from pml_common.bus.errors import NoResponder
from pml_common.bus.port import QueryClient
from pml_common.contracts import ids
from pml_common.contracts.analyzer import AnalyzeProgram, ExecutionAnalyzed, ProgramAnalysis
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.tool import ToolDefinition
from pml_gateway.adapters.bus.analyses import BusAnalyses
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.known_analysis import MAX_LENGTH
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import (
    READ,
    analyzed,
    rejected,
    with_capability,
    workflow,
)

Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)


@dataclass
class Analyzer(QueryClient):
    """Answers with the analysis of what it is asked, changed by `change`."""

    kind: str = "allowed"
    asked: list[AnalyzeProgram] = field(default_factory=list[AnalyzeProgram])

    @override
    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        assert isinstance(query, AnalyzeProgram)
        self.asked.append(query)
        of = Workflow(query.requested, "", "", 1.0, None)
        return cast(R, self._reply(of))

    def _reply(self, of: Workflow) -> ProgramAnalysis:
        match self.kind:
            case "rejected":
                return ProgramAnalysis(rejected=rejected(of))
            case "away":
                raise NoResponder("analyzer analyze")
            case "of another":
                return ProgramAnalysis(analyzed=analyzed(workflow(key="another")))
            case "changed":
                return ProgramAnalysis(analyzed=_changed(of, of.requested.code))
            case "changed from another":
                return ProgramAnalysis(analyzed=_changed(of, "return 3;"))
            case "reads the catalog":
                analysis = analyzed(of).model_copy(update={"reads_catalog": True})
                return ProgramAnalysis(analyzed=analysis)
            case "calls a capability":
                return ProgramAnalysis(analyzed=with_capability(analyzed(of)))
            case _:
                return ProgramAnalysis(analyzed=analyzed(of))


def _changed(of: Workflow, code: str) -> ExecutionAnalyzed:
    update = {"code": "return await go();", "submitted_code": code}
    return analyzed(of).model_copy(update=update)


@dataclass
class Scene:
    """Analyses under a clock, and the tools that the gateway lists."""

    analyzer: Analyzer = field(default_factory=Analyzer)
    listed: dict[str, ToolDefinition] = field(default_factory=lambda: {READ.tool_id: READ})
    now: float = 0.0

    def __post_init__(self) -> None:
        self.analyses = BusAnalyses(
            self.analyzer, self.listed.get, max_age_s=60, clock=lambda: self.now
        )

    async def analysis_of(self, new: Workflow) -> ExecutionAnalyzed:
        found = await self.analyses.of(new.requested)
        assert isinstance(found, ExecutionAnalyzed)
        return found


async def test_an_analysis_holds_for_the_next_request_of_the_program() -> None:
    scene, first = Scene(), workflow(ExecuteRequest(code="return 1;", args={"n": 1}))
    second = workflow(ExecuteRequest(code="return 1;", args={"n": 2}))
    for new in (first, second):
        found = await scene.analysis_of(new)
        assert found.workflow_id == new.workflow_id
        assert found.event_id == ids.effect_id(new.requested.event_id, "execution-analyzed")
    [asked] = scene.analyzer.asked
    assert asked.requested.args == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"code": "return 2;"},
        {"intent": "another"},
        {"name": "fs:other"},
        {"dry_run": True},
    ],
    ids=str,
)
async def test_another_request_is_analysed_anew(changed: dict[str, object]) -> None:
    scene = Scene()
    base: dict[str, object] = {"code": "return 1;", "intent": "count"}
    for body in (base, {**base, **changed}):
        await scene.analyses.of(workflow(ExecuteRequest.model_validate(body)).requested)
    assert len(scene.analyzer.asked) == 2


@pytest.mark.parametrize("change", ["age", "a tool is not listed", "a tool is another"])
async def test_an_analysis_that_may_be_out_of_date_is_made_anew(change: str) -> None:
    scene = Scene()
    await scene.analysis_of(workflow())
    match change:
        case "age":
            scene.now = 61
        case "a tool is not listed":
            scene.listed.clear()
        case _:
            scene.listed[READ.tool_id] = READ.model_copy(update={"description": "another"})
    await scene.analysis_of(workflow())
    assert len(scene.analyzer.asked) == 2


@pytest.mark.parametrize("kind", ["rejected", "calls a capability", "reads the catalog", "long"])
async def test_what_depends_on_more_or_is_long_is_not_kept(kind: str) -> None:
    scene = Scene(Analyzer(kind))
    code = "/" * MAX_LENGTH + "1" if kind == "long" else "return 1;"
    for _ in range(2):
        assert await scene.analyses.of(workflow(ExecuteRequest(code=code)).requested) is not None
    assert len(scene.analyzer.asked) == 2


async def test_an_analysis_may_change_what_a_client_submitted_and_nothing_else() -> None:
    scene, new = Scene(Analyzer("changed")), workflow()
    assert (await scene.analysis_of(new)).code == "return await go();"
    stored = new.requested.model_copy(update={"submitted": False})
    assert await Scene(Analyzer("changed")).analyses.of(stored) is None


@pytest.mark.parametrize("kind", ["away", "of another", "changed from another"])
async def test_without_an_analysis_of_exactly_this_program_there_is_none(kind: str) -> None:
    scene = Scene(Analyzer(kind))
    assert await scene.analyses.of(replace(workflow()).requested) is None
