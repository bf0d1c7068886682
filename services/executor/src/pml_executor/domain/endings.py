"""How a run ends; a failure in words its caller can act on."""

from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.trace import ToolEnd
from pml_executor.domain.instrumented import Instrumented
from pml_executor.domain.journal import Call, Diverged
from pml_executor.domain.protocol import Failure


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
    threw: Failure, origin: tuple[Call, ToolEnd] | None, program: Instrumented
) -> WorkflowError:
    """What escaped from the program: the error of the call `origin`, or its own."""
    offset = None
    line, column = threw.line, threw.column
    if line is not None and column is not None:
        offset = program.offset(line, column)
        line, column = program.place(offset)
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
    message = program.in_authors_words(threw.message, offset)
    named = threw.name not in ("", "Error")
    return WorkflowError(
        kind="syntax" if threw.phase == "load" else "user_error",
        message=f"{threw.name}: {message}" if named else message,
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
