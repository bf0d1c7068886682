"""Checks of a person's decision on an approval."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import StringConstraints

from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.api.request import Request
from pml_gateway.domain.api.shown import shown_calls_of
from pml_gateway.domain.api.shown_calls import ShownToApprover
from pml_gateway.domain.workflow.grant import Covers
from pml_gateway.domain.workflow.parking import name_of
from pml_gateway.domain.workflow.workflow import Approval, Workflow


class Decide(Request):
    """Let a workflow run (`approve`, `continue`), end it (`deny`, `abort`), or have its agent send
    another program (`replan`). `approval_id` names the approval that is decided; a parked run
    requires it. `covers` is the extent of an approval of a parked run: its first waiting call, all
    waiting calls, or all further calls of their nodes, whatever their arguments. With `wait` the
    response comes when the workflow has ended. `shown` is what the approver saw: if the workflow
    waits for something else by now, the decision is refused.
    """

    decision: Literal["approve", "continue", "deny", "abort", "replan"]
    approval_id: UUID | None = None
    covers: Covers = "calls"
    reason: Annotated[str, StringConstraints(max_length=2000)] | None = None
    shown: ShownToApprover | None = None
    wait: bool = False

    @property
    def outcome(self) -> Literal["approved", "denied"]:
        """The outcome of the approval under this decision."""
        return "approved" if self.decision in ("approve", "continue") else "denied"


def answerable(workflow: Workflow, approval_id: UUID | None, at: datetime) -> Approval:
    """Return the approval that a decision made `at` this moment answers. Raises Conflict.

    `approval_id` is the approval that the person saw, if the decision names it.
    """
    approval, name = workflow.approval, f"workflow {workflow.workflow_id}"
    if approval is None:
        raise Conflict(f"{name} waits for no approval: it is {workflow.state}")
    if approval_id is not None and approval_id != approval.approval_id:
        raise Conflict(f"{name} waits for approval {approval.approval_id}, not for {approval_id}")
    if approval_id is None and approval.outcome is None and approval.parked is not None:
        raise Conflict(
            f"{name} waits for approval {approval.approval_id}, of "
            f"{name_of(workflow, approval.parked)}: review it and name its approval_id"
        )
    if approval.outcome is not None:
        raise Conflict(_already_decided(name, approval))
    if at >= approval.expires_at:
        raise Conflict(f"the time to approve {name} ended at {_time(approval.expires_at)}")
    return approval


def agreed_on(workflow: Workflow, approval: Approval, decide: Decide) -> None:
    """Check that a decision is about what the workflow waits for now, and that only what can be
    shown in full is approved. Raises Conflict."""
    now, named = shown_calls_of(workflow, approval), decide.shown
    if named is not None and named.digest != now.digest():
        raise Conflict(
            f"workflow {workflow.workflow_id} does not wait for what was shown "
            f"({named.digest[:8]}…): review it again"
        )
    if decide.outcome == "approved" and not now.is_all:
        raise Conflict(
            f"workflow {workflow.workflow_id} has more calls than can be shown, so it cannot be "
            "approved: deny it, and have its agent split the program"
        )


def with_shown(workflow: Workflow, shown: ShownToApprover | None) -> Workflow:
    """Return the workflow with what its approver was shown, to be stored with the decision."""
    approval = workflow.approval
    if approval is None or shown is None:
        return workflow
    return replace(workflow, approval=replace(approval, shown=shown))


def _already_decided(name: str, approval: Approval) -> str:
    when = f" at {_time(approval.decided_at)}" if approval.decided_at else ""
    if approval.outcome == "expired":
        return f"the time to approve {name} ended{when}; run it again"
    return f"{approval.decided_by} {approval.outcome} {name}{when} already"


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
