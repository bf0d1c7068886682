"""MCP servers that a program names before they have listed their tools."""

import re
from collections.abc import Iterable, Sequence

from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.contracts.error import WorkflowError

_IN_A_NAME = "[A-Za-z0-9_-]"


def named_in(program: str, servers: Iterable[str]) -> Sequence[str]:
    """Return the servers whose names occur in a program's text; rather too many than too few."""
    return [
        name
        for name in servers
        if re.search(f"(?<!{_IN_A_NAME}){re.escape(name)}(?!{_IN_A_NAME})", program)
    ]


def with_absent(
    error: WorkflowError, rejection: AnalysisRejected, absent: Sequence[str]
) -> WorkflowError:
    """Return the error of a rejected program, with what is known of the absent servers that it
    names."""
    if rejection.kind != "rejected" or not absent:
        return error
    return error.model_copy(update={"message": ". ".join((error.message.rstrip("."), *absent))})
