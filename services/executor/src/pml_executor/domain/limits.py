"""Limits of one run, and its use of them."""

from dataclasses import dataclass

from pml_common.contracts.error import ErrorKind, WorkflowError
from pml_executor.domain.endings import RunEnded

_MIB = 1024 * 1024


@dataclass(frozen=True)
class RunLimits:
    """Bounds of one run, sizes in bytes of JSON.

    `max_message_bytes` applies to the arguments of a call, an answer to it, the result of the run,
    and all its log and branch entries together; `max_journal_bytes` to all of that together. Up to
    `max_outage_s` without the bus do not count as time of the run.
    """

    max_tool_calls: int = 1000
    max_capability_calls: int = 1000
    max_message_bytes: int = 4 * _MIB
    max_journal_bytes: int = 32 * _MIB
    max_outage_s: float = 600.0


class Allowance:
    """Counts against the limits. Raises RunEnded at the first that is exceeded."""

    def __init__(self, limits: RunLimits) -> None:
        self._limits = limits
        self._calls = 0
        self._nested = 0
        self._noted = 0
        self._bytes = 0

    def call(self, node_id: str, size: int) -> None:
        """Count a tool call with arguments of `size` bytes."""
        self._calls += 1
        most = self._limits.max_tool_calls
        if self._calls > most:
            raise _ended("call_limit", f"the run made more than {most} tool calls", node_id)
        self.store(size)

    def nested(self, node_id: str, size: int) -> None:
        """Count a call of a capability with arguments of `size` bytes."""
        self._nested += 1
        most = self._limits.max_capability_calls
        if self._nested > most:
            message = f"the run called capabilities more than {most} times"
            raise _ended("call_limit", message, node_id)
        self.store(size)

    def note(self, size: int) -> None:
        """Count a log line or branch of `size` bytes."""
        self._noted += size
        most = self._limits.max_message_bytes
        if self._noted > most:
            raise _ended(
                "output_limit",
                f"the run logged {self._noted} bytes, more than the {most} allowed",
            )

    def store(self, size: int) -> None:
        """Count `size` more bytes in the journal."""
        self._bytes += size
        most = self._limits.max_journal_bytes
        if self._bytes > most:
            raise _ended(
                "output_limit",
                f"the run took {self._bytes} bytes of calls, results and logs, more than the "
                f"{most} allowed",
            )


def _ended(kind: ErrorKind, message: str, node_id: str | None = None) -> RunEnded:
    return RunEnded(WorkflowError(kind=kind, message=message, node_id=node_id))
