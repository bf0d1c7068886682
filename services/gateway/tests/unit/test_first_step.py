"""The first step of a workflow: from the analysis before it is stored, or later."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from typing_extensions import override

from pml_common.bus.errors import Retryable
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.decision import Policy, Verdict
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import (
    ApprovalRequested,
    ExecutionRequested,
    WorkflowFinished,
)
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.capability_names import CachedCapabilityNames
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.application.first_step import FirstStep
from pml_gateway.application.rulings import Rulings
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import Analyses
from services.gateway.tests.support.builders import AT, analyzed, rejected, workflow
from services.gateway.tests.support.fake_stores import FakeWorkflows
from services.gateway.tests.support.harness import FakeServers, workflow_service

Outcome = ExecutionAnalyzed | AnalysisRejected | None


@dataclass(frozen=True)
class Answer(Analyses):
    """Analyses with one answer."""

    outcome: Outcome

    @override
    async def of(self, requested: ExecutionRequested) -> Outcome:
        return self.outcome


class Unready(Rulings):
    """Rulings while a server is being connected."""

    @override
    async def on(
        self, analysis: ExecutionAnalyzed, requested: ExecutionRequested | None
    ) -> Callable[[Workflow], Analyzed]:
        raise Retryable("MCP server fs is being connected")


def first_step(outcome: Outcome, kind: type[Rulings] = Rulings) -> FirstStep:
    tools, bus = ToolRouter([FakeServers()]), MemoryBus()
    names = CachedCapabilityNames(bus)
    rulings = kind(tools, lambda scope: Policy(otherwise="allow"), names, lambda: AT)
    return FirstStep(workflow_service(FakeWorkflows(), bus), Answer(outcome), rulings)


@pytest.mark.parametrize(
    ("verdict", "state", "effect"),
    [
        ("allow", "running", RunWorkflow),
        ("ask", "awaiting_approval", ApprovalRequested),
        ("deny", "failed", WorkflowFinished),
    ],
)
async def test_an_analysed_program_is_decided_on(
    verdict: Verdict, state: str, effect: type[Message]
) -> None:
    new = workflow()
    analysis = analyzed(new, verdict)
    after, effects = await first_step(analysis).of(new)
    assert (after.state, after.analysis) == (state, analysis)
    assert [type(each) for each in effects] == [effect]


async def test_a_rejected_program_has_ended() -> None:
    new = workflow()
    after, effects = await first_step(rejected(new)).of(new)
    assert after.state == "failed"
    assert after.error is not None
    assert after.error.kind == "syntax"
    assert [type(each) for each in effects] == [WorkflowFinished]


@pytest.mark.parametrize("why", ["no answer", "a server is being connected", "another's analysis"])
async def test_without_a_decision_the_workflow_is_requested(why: str) -> None:
    new = workflow()
    outcome = {"no answer": None, "another's analysis": analyzed(workflow(key="another"))}
    kind = Unready if why == "a server is being connected" else Rulings
    step = first_step(outcome.get(why, analyzed(new)), kind)
    assert await step.of(new) == (new, (new.requested,))
