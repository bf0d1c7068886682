"""Programs that PML writes: planned by the registry, analysed, and stored."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast
from uuid import UUID

import pytest
from typing_extensions import override

from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.analyzer import AnalyzeProgram, ExecutionAnalyzed, ProgramAnalysis
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.curation import LiftCapability, SaveCapability
from pml_common.contracts.decision import Decision, Policy
from pml_common.contracts.merging import MergeCapabilities, PlanMerge
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.application.composing import Composing
from pml_gateway.domain.api.curation import SaveProgram
from pml_gateway.domain.api.records import MergeSources
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import Caller, WorkflowStore
from services.gateway.tests.support.builders import AT, SCOPE, analyzed, rejected, workflow
from services.gateway.tests.support.dns import example
from services.gateway.tests.support.fake_stores import FakeWorkflows

Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)
CALLER = Caller(SCOPE, "mira")
REQUEST = UUID(int=9)
MERGE = MergeSources(sources=("fs:ensure_file", "json:check"), name="fs:read_checked")
PLAN = example(catalog.PLAN_MERGE)


def allowed(of: Workflow) -> ProgramAnalysis:
    return ProgramAnalysis(analyzed=analyzed(of))


def refused(of: Workflow) -> ProgramAnalysis:
    return ProgramAnalysis(rejected=rejected(of))


def denied(of: Workflow) -> ProgramAnalysis:
    decision = Decision(verdict="deny", reasons=("Calls fs:wipe.",))
    return ProgramAnalysis(analyzed=analyzed(of).model_copy(update={"decision": decision}))


def of_another(of: Workflow) -> ProgramAnalysis:
    return ProgramAnalysis(analyzed=analyzed(workflow(key="another")))


@dataclass
class Services(QueryClient):
    """A registry that answers with the golden examples, and an analyzer."""

    analyse: Callable[[Workflow], ProgramAnalysis] = allowed
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    asked: list[Query] = field(default_factory=list[Query])

    @override
    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        self.asked.append(query)
        if isinstance(query, AnalyzeProgram):
            return cast(R, self.analyse(Workflow(query.requested, "", "", 1.0, None)))
        answer = self.answers.get(query_type.name)
        if isinstance(answer, Exception):
            raise answer
        return answer or example(cast(Any, query_type))


def composing(services: Services, store: WorkflowStore | None = None) -> Composing:
    return Composing(services, store or FakeWorkflows(), lambda _: Policy(), lambda: AT)


async def test_a_merge_is_planned_analysed_for_its_caller_and_registered() -> None:
    notice = "it may not fit"
    services = Services(
        answers={"plan-merge": PLAN.model_copy(update={"notices": (notice, notice)})}
    )
    made = await composing(services).merge(CALLER, MERGE, REQUEST, 5.0)
    planned, analysis, merged = services.asked
    assert planned == PlanMerge(
        scope=SCOPE, principal="mira", request_id=REQUEST, name=MERGE.name, sources=MERGE.sources
    )
    assert isinstance(analysis, AnalyzeProgram)
    requested = analysis.requested
    assert (requested.code, requested.intent, requested.name) == (PLAN.code, PLAN.intent, None)
    assert (requested.scope, requested.principal) == (SCOPE, "mira")
    assert isinstance(merged, MergeCapabilities)
    assert merged.sources == tuple(source.reference for source in PLAN.sources)
    assert (merged.request_id, merged.name, merged.principal) == (REQUEST, MERGE.name, "mira")
    assert isinstance(merged.analysis, ExecutionAnalyzed)
    assert merged.analysis.code == PLAN.code
    assert made == example(catalog.MERGE_CAPABILITIES).model_copy(update={"notices": (notice,)})


async def test_a_repeated_merge_is_answered_by_the_plan() -> None:
    before = example(catalog.MERGE_CAPABILITIES)
    services = Services(answers={"plan-merge": PLAN.model_copy(update={"made": before})})
    assert await composing(services).merge(CALLER, MERGE, REQUEST, 5.0) == before
    assert len(services.asked) == 1


@pytest.mark.parametrize(
    ("analyse", "code", "why"),
    [
        (refused, "invalid", "the program is refused: line "),
        (denied, "conflict", "the policy denies this program: Calls fs:wipe."),
        (of_another, "unavailable", "the analyzer answered with another analysis"),
    ],
)
async def test_a_program_that_must_not_run_is_not_registered(
    analyse: Callable[[Workflow], ProgramAnalysis], code: str, why: str
) -> None:
    services = Services(analyse)
    with pytest.raises(QueryFailed, match=why) as raised:
        await composing(services).merge(CALLER, MERGE, REQUEST, 5.0)
    assert raised.value.code == code
    assert [type(each) for each in services.asked] == [PlanMerge, AnalyzeProgram]


async def test_a_saved_program_is_lifted_on_request() -> None:
    services = Services()
    asked = SaveProgram(name="fs:load", capability="unnamed_a7f3", lift=True, update=True)
    saved = await composing(services).save(CALLER, asked, 5.0)
    lift, analysis, save = services.asked
    assert lift == LiftCapability(scope=SCOPE, principal="mira", reference="unnamed_a7f3")
    assert isinstance(analysis, AnalyzeProgram)
    assert analysis.requested.code == example(catalog.LIFT_CAPABILITY).code
    assert isinstance(save, SaveCapability)
    assert save.lifted is not None
    assert save.lifted.code == analysis.requested.code
    assert (save.reference, save.name, save.update) == ("unnamed_a7f3", "fs:load", True)
    assert saved.parameters == ("path",)


async def test_without_lift_the_program_is_saved_as_it_is() -> None:
    services = Services()
    await composing(services).save(CALLER, SaveProgram(name="a:b", workflow_id=REQUEST), 5.0)
    (save,) = services.asked
    assert isinstance(save, SaveCapability)
    assert (save.lifted, save.workflow_id) == (None, REQUEST)


async def test_what_a_workflow_ran_is_lifted_by_the_id_of_its_program() -> None:
    store, ran = FakeWorkflows(), workflow()
    analysis = analyzed(ran)
    await store.accept(_with(ran, analysis), ())
    services = Services()
    asked = SaveProgram(name="fs:load", workflow_id=ran.workflow_id, lift=True)
    await composing(services, store).save(CALLER, asked, 5.0)
    lift, _, save = services.asked
    assert isinstance(lift, LiftCapability)
    assert lift.reference == str(analysis.capability.capability_id)
    assert isinstance(save, SaveCapability)
    assert save.workflow_id == ran.workflow_id


async def test_a_workflow_without_a_program_cannot_be_lifted() -> None:
    store, dry, waiting = FakeWorkflows(), workflow(key="dry"), workflow(key="waiting")
    await store.accept(_with(dry, analyzed(dry).model_copy(update={"dry_run": True})), ())
    await store.accept(waiting, ())
    for id_, code in (
        (dry.workflow_id, "conflict"),
        (waiting.workflow_id, "conflict"),
        (REQUEST, "not_found"),
    ):
        asked = SaveProgram(name="fs:load", workflow_id=id_, lift=True)
        with pytest.raises(QueryFailed, match=str(id_)) as raised:
            await composing(Services(), store).save(CALLER, asked, 5.0)
        assert raised.value.code == code


async def test_what_is_away_is_said_once_the_time_is_over() -> None:
    for away, why in (
        (TimeoutError(), "no answer within 5 s"),
        (StorageUnavailable("gone"), "gone"),
    ):
        services = Services(answers={"plan-merge": away})
        with pytest.raises(QueryFailed, match=why) as raised:
            await composing(services).merge(CALLER, MERGE, REQUEST, 5.0)
        assert raised.value.code == "unavailable"


def _with(of: Workflow, analysis: ExecutionAnalyzed) -> Workflow:
    return replace(of, analysis=analysis)
