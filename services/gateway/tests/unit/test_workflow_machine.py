"""Properties of the state machine under any events in any order."""

from typing import cast
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_common.contracts.gateway import ApprovalDecided, WorkflowFinished
from pml_gateway.domain.workflow.events import (
    Analyzed,
    Cancelled,
    Decided,
    Due,
    NotAnalyzed,
)
from pml_gateway.domain.workflow.workflow import State, advance
from services.gateway.tests.support.builders import (
    ELSEWHERE,
    RULES,
    finished,
    later,
    rejected,
    workflow,
)
from services.gateway.tests.support.parked_runs import by_name, parked, parked_event
from services.gateway.tests.support.steps import Cause, step

OURS, THEIRS = workflow(key="ours"), workflow(key="theirs", scope=ELSEWHERE)
ASKED, _ = advance(OURS, Analyzed(by_name(OURS), later(0)), RULES)
APPROVAL = ASKED.approval.approval_id if ASKED.approval else UUID(int=0)
RUNNING, EFFECTS = advance(ASKED, Decided(APPROVAL, "approved", "mira", later(0)), RULES)
FIRST = cast(RunWorkflow, EFFECTS[-1])
STANDING, _ = advance(RUNNING, parked_event(parked(FIRST), later(0)), RULES)
SECOND = STANDING.approval.approval_id if STANDING.approval else UUID(int=0)
WENT_ON = ids.effect_id(SECOND, "run-workflow")
THEIR_RUN = FIRST.model_copy(update={"scope": ELSEWHERE, "workflow_id": THEIRS.workflow_id})
NEXT: dict[State, set[State]] = {
    "requested": {"awaiting_approval", "running", "failed"},
    "awaiting_approval": {"running", "failed"},
    "running": {"awaiting_approval", "succeeded", "failed"},
    "succeeded": set(),
    "failed": set(),
}
MOMENTS = st.integers(0, 10_000).map(later)
EITHER = st.sampled_from([OURS, OURS, OURS, THEIRS])


@st.composite
def workflow_events(draw: st.DrawFn) -> Cause:
    """Generate any event of this workflow, or of another."""
    at, of = draw(MOMENTS), draw(EITHER)
    match draw(st.integers(0, 6)):
        case 0:
            verdict = draw(st.sampled_from(("allow", "ask", "ask", "deny")))
            refused = draw(st.sampled_from((None, None, "taken")))
            return Analyzed(by_name(of, verdict), at, name_refused=refused)
        case 1:
            return NotAnalyzed(rejected(of), at)
        case 2:
            outcome = draw(st.sampled_from(("approved", "denied")))
            return Decided(
                draw(st.sampled_from((APPROVAL, SECOND, UUID(int=1)))), outcome, "mira", at
            )
        case 3:
            error = draw(st.sampled_from((None, WorkflowError(kind="timeout", message="late"))))
            return finished(of, error=error)
        case 4:
            return parked_event(parked(draw(st.sampled_from((FIRST, FIRST, THEIR_RUN)))), at)
        case 5:
            return Cancelled("mira", at)
        case _:
            return Due(at)


@given(st.lists(workflow_events(), max_size=12))
def test_a_workflow_only_goes_forward_ends_once_and_never_runs_unallowed(
    history: list[Cause],
) -> None:
    now, told = OURS, list[Message]()
    for workflow_event in history:
        after, effects = step(now, workflow_event)
        assert after.state == now.state or after.state in NEXT[now.state]
        if not effects and not isinstance(workflow_event, RunFinished):
            assert after == now
        told += effects
        now = after
    ended = now.state in ("succeeded", "failed")
    assert ended == (now.finished_at is not None) == (now.due_at is None)
    published = sum(isinstance(each, WorkflowFinished) for each in told)
    assert published == (ended and now.run is None), "the end of a run is its own"
    decided = [each for each in told if isinstance(each, ApprovalDecided)]
    assert len({each.approval_id for each in decided}) == len(decided)
    agreed = {each.approval_id for each in decided if each.outcome == "approved"}
    runs = [each for each in told if isinstance(each, RunWorkflow)]
    went_on = [run for run in runs if run.command_id == WENT_ON]
    assert all(len(run.grant.calls) == (run.command_id == WENT_ON) for run in runs)
    assert SECOND in agreed or not went_on
    allowed = now.analysis is not None and now.analysis.decision.verdict == "allow"
    assert not runs or allowed or APPROVAL in agreed
    assert all(message.scope == OURS.scope for message in told)


@given(st.lists(workflow_events(), max_size=6), workflow_events())
def test_a_step_taken_again_states_the_same(history: list[Cause], repeated: Cause) -> None:
    now = OURS
    for workflow_event in history:
        now, _ = step(now, workflow_event)
    assert step(now, repeated) == step(now, repeated)
    after, _ = step(now, repeated)
    if not isinstance(repeated, Due):
        assert step(after, repeated) == (after, ())
