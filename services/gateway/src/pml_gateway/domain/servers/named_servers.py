"""MCP servers that a program names before anybody knows their tools."""

import re
from collections.abc import Iterable, Sequence

from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.contracts.error import WorkflowError

_IN_A_NAME = "[A-Za-z0-9_-]"


def named_in(program: str, servers: Iterable[str]) -> Sequence[str]:
    """The servers whose names stand in a program's text; rather too many than too few."""
    return [
        name
        for name in servers
        if re.search(f"(?<!{_IN_A_NAME}){re.escape(name)}(?!{_IN_A_NAME})", program)
    ]


def with_absent(
    error: WorkflowError, rejection: AnalysisRejected, absent: Sequence[str]
) -> WorkflowError:
    """The error of a program that cannot run, with what is known of absent servers that it
    names."""
    if rejection.kind != "rejected" or not absent:
        return error
    return error.model_copy(update={"message": ". ".join((error.message.rstrip("."), *absent))})
