"""Failures of a workflow, as its caller gets them."""

from typing import Literal

from pml_common.contracts.base import Contract
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import JsonObject

ErrorKind = Literal[
    "syntax",
    "rejected",
    "denied",
    "tool_error",
    "user_error",
    "timeout",
    "memory_limit",
    "output_limit",
    "call_limit",
    "outcome_unknown",
    "diverged",
    "cancelled",
    "internal",
]


Fault = Literal["caller", "environment", "capability"]
"""The party that made a run fail: its caller, its environment, or the capability itself."""


class WorkflowError(Contract):
    """The failure of a workflow; `line` and `column` are in the author's source, from 1. `fault`
    says whose fault it was where that is known and the kind does not say it; `code` is that of the
    JSON-RPC error with which the server of its one tool answered, if that is why."""

    kind: ErrorKind
    message: str
    node_id: str | None = None
    line: int | None = None
    column: int | None = None
    tool: str | None = None
    arguments: JsonObject | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    fault: Fault | None = None
    code: int | None = None
