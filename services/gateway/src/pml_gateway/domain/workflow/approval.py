"""Whether a person's decision still counts (F4)."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import StringConstraints

from pml_gateway.domain.api.api import Request
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.api.shown import shown_calls_of
from pml_gateway.domain.api.shown_calls import ShownToApprover
from pml_gateway.domain.workflow.grant import Covers
from pml_gateway.domain.workflow.parking import name_of
from pml_gateway.domain.workflow.workflow import Approval, Workflow


class Decide(Request):
    """Let a workflow run (`approve`, `continue`), or not (`deny`, `abort`), or have its agent send
    another program (`replan`). With `approval_id`, which a run that waits in its midst asks for,
    only that approval is meant; `covers` says how much an approval of a run that waits is for: its
    first call, all calls that wait, or all further calls of their nodes, whatever their arguments;
    with `wait` the answer comes when the workflow has ended. `shown` is what the approver saw:
    where something else stands by now, the decision is refused.
    """

    decision: Literal["approve", "continue", "deny", "abort", "replan"]
    approval_id: UUID | None = None
    covers: Covers = "calls"
    reason: Annotated[str, StringConstraints(max_length=2000)] | None = None
    shown: ShownToApprover | None = None
    wait: bool = False

    @property
    def outcome(self) -> Literal["approved", "denied"]:
        """What it comes to."""
        return "approved" if self.decision in ("approve", "continue") else "denied"


def answerable(workflow: Workflow, approval_id: UUID | None, at: datetime) -> Approval:
    """The approval that a decision made `at` this moment answers. Raises Conflict.

    `approval_id` is what the person had before their eyes, where they said so.
    """
    approval, name = workflow.approval, f"workflow {workflow.workflow_id}"
    if approval is None:
        raise Conflict(f"{name} waits for no approval: it is {workflow.state}")
    if approval_id is not None and approval_id != approval.approval_id:
        raise Conflict(f"{name} waits for approval {approval.approval_id}, not for {approval_id}")
    if approval_id is None and approval.outcome is None and approval.parked is not None:
        raise Conflict(
            f"{name} waits for approval {approval.approval_id}, of "
            f"{name_of(workflow, approval.parked)}: look at it and name it to answer it"
        )
    if approval.outcome is not None:
        raise Conflict(_settled(name, approval))
    if at >= approval.expires_at:
        raise Conflict(f"the time to approve {name} ended at {_time(approval.expires_at)}")
    return approval


def agreed_on(workflow: Workflow, approval: Approval, decide: Decide) -> None:
    """Check that a decision is about what stands now, and that nothing is agreed to which nobody
    can be shown. Raises Conflict."""
    now, named = shown_calls_of(workflow, approval), decide.shown
    if named is not None and named.digest != now.digest():
        raise Conflict(
            f"what workflow {workflow.workflow_id} waits for is not what was shown "
            f"({named.digest[:8]}…): look at it again"
        )
    if decide.outcome == "approved" and not now.is_all:
        raise Conflict(
            f"workflow {workflow.workflow_id} has more calls than can be shown, so that nobody can "
            "agree to them: deny it, and have its agent split the program"
        )


def with_shown(workflow: Workflow, shown: ShownToApprover | None) -> Workflow:
    """A workflow with what its approver was shown, kept with the decision."""
    approval = workflow.approval
    if approval is None or shown is None:
        return workflow
    return replace(workflow, approval=replace(approval, shown=shown))


def _settled(name: str, approval: Approval) -> str:
    when = f" at {_time(approval.decided_at)}" if approval.decided_at else ""
    if approval.outcome == "expired":
        return f"the time to approve {name} ended{when}; run it again"
    return f"{approval.decided_by} {approval.outcome} {name}{when} already"


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
