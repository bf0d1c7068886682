"""The way on from an answer without a result: for the agent, and for the person who decides."""

from datetime import datetime
from typing import Final
from uuid import UUID

from pydantic import Field

from pml_common.contracts.base import Contract
from pml_common.contracts.tool import JsonObject

RESULT_TOOL: Final = "pml_get_task_result"
"""The tool that waits for a workflow's result and returns it."""

WAIT_S: Final = 30
"""Seconds for which the suggested call waits."""


def _is_none(value: object) -> bool:
    return value is None


class NextCall(Contract):
    """A call of one of PML's own tools."""

    tool: str
    arguments: JsonObject


class PersonsWay(Contract):
    """Commands with which a person reviews and decides a pending approval."""

    review: str
    approve: str
    deny: str


class Next(Contract):
    """The way on, in a sentence; `call` is for the agent, `person` for the one who decides, where
    an approval is pending."""

    message: str
    call: NextCall
    person: PersonsWay | None = Field(default=None, exclude_if=_is_none)

    @property
    def text(self) -> str:
        """The whole way on, for who reads the text alone."""
        if self.person is None:
            return self.message
        return (
            f"{self.message}\nworkflow_id: {self.call.arguments['workflow_id']}; approve: "
            f"`{self.person.approve}`; deny: `{self.person.deny}`; review: `{self.person.review}`"
        )


def after_running(workflow_id: UUID) -> Next:
    """Return the way on from a workflow that is under way."""
    call = _result_call(workflow_id)
    message = (
        f"The workflow goes on without its caller. {_words(call)} It waits for the end and "
        "returns the result. The program need not be sent again."
    )
    return Next(message=message, call=call)


def until_approved(
    workflow_id: UUID, expires_at: datetime, approval_id: UUID | None, *, is_layer: bool
) -> Next:
    """Return the way on from a pending approval. `approval_id` is that of a parked run, which a
    decision has to name; `is_layer`: it waits between two layers of a DAG."""
    which = "" if approval_id is None else f" --approval {approval_id}"
    go_on, stop = ("continue", "abort") if is_layer else ("approve", "deny")
    person = PersonsWay(
        review=f"pml approvals show {workflow_id}",
        approve=f"pml approvals {go_on} {workflow_id}{which}",
        deny=f"pml approvals {stop} {workflow_id}{which}",
    )
    call = _result_call(workflow_id)
    message = (
        f"Ask a person to decide before {expires_at:%Y-%m-%d %H:%M %Z}. Call {RESULT_TOOL}: it "
        "waits for the decision and the end, and returns the result."
    )
    return Next(message=message, call=call, person=person)


def _result_call(workflow_id: UUID) -> NextCall:
    return NextCall(tool=RESULT_TOOL, arguments={"workflow_id": str(workflow_id), "wait_s": WAIT_S})


def _words(call: NextCall) -> str:
    return f"Call {call.tool} with workflow_id {call.arguments['workflow_id']}."
