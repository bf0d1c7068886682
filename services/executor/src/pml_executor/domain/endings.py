"""Endings of a run, with errors that its caller can act on."""

from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from pml_common.contracts.error import ErrorKind, WorkflowError
from pml_common.contracts.trace import ToolEnd
from pml_executor.domain.instrumented import Instrumented
from pml_executor.domain.journal import Call, Diverged
from pml_executor.domain.protocol import Failure

_KILLED = -9
_OUT_OF_PROCESSOR_TIME = -24
_MAX_STDERR_TAIL = 500


@dataclass(frozen=True)
class Ending:
    """The result of a run: a value, or an error. `notices` say what the value lost; it is `void` if
    it is null because the program returned what a tool's result does not have."""

    result: JsonValue = None
    error: WorkflowError | None = None
    notices: tuple[str, ...] = ()
    void: bool = False


class RunEnded(Exception):
    """The run ends with this error, whatever the program would do next."""

    def __init__(self, error: WorkflowError) -> None:
        super().__init__(error.message)
        self.error = error


def failure_of(
    threw: Failure, origin: tuple[Call, ToolEnd] | None, program: Instrumented
) -> WorkflowError:
    """Build the error that escaped from the program: that of the call `origin`, or its own."""
    offset = None
    line, column = threw.line, threw.column
    if line is not None and column is not None:
        offset = program.offset(line, column)
        line, column = program.author_position(offset)
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
            fault=end.error.fault if end.error else None,
        )
    message = program.author_message(threw.message, offset)
    named = threw.name not in ("", "Error")
    return WorkflowError(
        kind="syntax" if threw.phase == "load" else "user_error",
        message=f"{threw.name}: {message}" if named else message,
        line=line,
        column=column,
    )


def ending_of(error: Exception) -> Ending | None:
    """Return the ending that an error inside a run stands for; None if it does not end the run."""
    if isinstance(error, RunEnded):
        return Ending(error=error.error)
    if isinstance(error, Diverged):
        diverged = WorkflowError(kind="diverged", message=str(error), node_id=error.node_id)
        return Ending(error=diverged)
    return None


def first_cause(error: Exception) -> Exception:
    """Return the first error in a group; the other tasks were cancelled because of it."""
    while isinstance(error, ExceptionGroup):
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    return error


@dataclass(frozen=True)
class ProcessExit:
    """Exit of a sandbox process. `status` is negative for a signal; `stderr_tail` is the end of its
    stderr; `exceeded_memory` whether it was killed here for its memory."""

    status: int
    stderr_tail: str = ""
    exceeded_memory: bool = False


def exit_error(
    process: ProcessExit, *, max_heap_mib: int, max_rss_mib: int
) -> tuple[ErrorKind, str]:
    """Return the kind and the message of the error that a process's exit is for its run."""
    if process.exceeded_memory:
        text = f"the run took more than its {max_rss_mib} MiB of memory, with buffers and all"
        return "memory_limit", text
    if "out of memory" in process.stderr_tail:
        return "memory_limit", f"the program used more than its {max_heap_mib} MiB of memory"
    if process.status == _OUT_OF_PROCESSOR_TIME:
        return "timeout", "the run used all the processor time that one process may have"
    if process.status == _KILLED:
        return "internal", "the sandbox process was killed, as a system short of memory does"
    text = f"the sandbox process ended with status {process.status}"
    tail = process.stderr_tail[:_MAX_STDERR_TAIL]
    return "internal", f"{text}: {tail}" if tail else text
