"""How a run ends; a failure in words its caller can act on."""

from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.trace import ToolEnd
from pml_executor.domain.journal import Call, Diverged
from pml_executor.domain.positions import author_column
from pml_executor.domain.protocol import Threw


@dataclass(frozen=True)
class Ending:
    """How a run ended: with a value, or with an error."""

    result: JsonValue = None
    error: WorkflowError | None = None


class RunEnded(Exception):
    """The run ends here, whatever the program would do next."""

    def __init__(self, error: WorkflowError) -> None:
        super().__init__(error.message)
        self.error = error


def failure_of(
    threw: Threw, origin: tuple[Call, ToolEnd] | None, instrumented: str
) -> WorkflowError:
    """What escaped from the program: the error of the call `origin`, or its own."""
    line = threw.line
    column = None
    if line is not None and threw.column is not None:
        column = author_column(instrumented, line, threw.column)
    if origin is not None:
        call, end = origin
        return WorkflowError(
            kind="tool_error",
            message=end.error.message if end.error else threw.message,
            node_id=call.node_id,
            line=line,
            column=column,
            tool=end.tool,
            arguments=call.args,
        )
    named = threw.name not in ("", "Error")
    return WorkflowError(
        kind="syntax" if threw.phase == "load" else "user_error",
        message=f"{threw.name}: {threw.message}" if named else threw.message,
        line=line,
        column=column,
    )


def ending_of(error: Exception) -> Ending | None:
    """The ending that an error inside a run stands for; None when the run itself is not over."""
    if isinstance(error, RunEnded):
        return Ending(error=error.error)
    if isinstance(error, Diverged):
        diverged = WorkflowError(kind="diverged", message=str(error), node_id=error.node_id)
        return Ending(error=diverged)
    return None


def first_cause(error: Exception) -> Exception:
    """What went wrong first in a group; the others were cancelled because of it."""
    while isinstance(error, ExceptionGroup):
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    return error
