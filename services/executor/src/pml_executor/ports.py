"""Ports of a run: sandboxes, the journal and tools."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from pml_common.contracts.error import ErrorKind
from pml_common.contracts.executor import ParkMark, RunFinished, RunWorkflow, WorkflowParked
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.contracts.trace import TraceEvent
from pml_executor.domain.journal import RunJournal
from pml_executor.domain.protocol import Answer, Program, ProgramMessage

Clock = Callable[[], float]
"""Unix time in milliseconds by the bus's clock: entries of several executors are compared."""


class SandboxBroken(Exception):
    """The sandbox failed: the program violated its interface, or the process ended."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind


class NeedsWorker(Exception):
    """The sandbox gives each program a realm, and this one cannot run in a realm. Nothing of it has
    run, and the sandbox can be finished."""


class SandboxUnavailable(Exception):
    """No sandbox became available in time; the run can be retried."""


class GatewayUnreachable(Exception):
    """The gateway did not answer in time; it is unknown whether the call was made."""


class Sandbox(Protocol):
    """Runs one program per lease."""

    async def run(self, program: Program) -> None:
        """Start the program; at most once per lease."""
        ...

    async def receive(self) -> ProgramMessage:
        """Return the program's next message; can be cancelled. Raises SandboxBroken and, instead
        of the first message, NeedsWorker."""
        ...

    def answer(self, answer: Answer) -> None:
        """Send the outcome of a call; answers arrive in the order in which they are sent."""
        ...

    def pause(self) -> None:
        """Request a `Paused` message after all messages that the program is about to send."""
        ...

    def kill(self) -> None:
        """Stop the program immediately; the sandbox runs no other."""
        ...

    def finish(self) -> None:
        """Stop what a program that ended by itself, in a valid run, left under way."""
        ...


class SandboxPool(Protocol):
    """Leases sandboxes."""

    def lease(
        self, owner: Scope | None, *, realm: bool = False
    ) -> AbstractAsyncContextManager[Sandbox]:
        """Lease a sandbox that is used by this owner alone or, without an owner, by this lease
        alone. `realm`: it may be shared with those of the owner's other runs of which the same is
        true, in a standing Worker. Nothing of an earlier program is left in it, and this one is
        stopped when the context exits. Raises SandboxUnavailable."""
        ...


class JournalStore(Protocol):
    """One run's journal. An entry is part of it as soon as it is noted, and is stored later, in the
    same order. Raises Fenced once another executor has taken the journal over."""

    def begin(self, first: TraceEvent) -> RunJournal:
        """Start a new journal with `first`; nothing is stored yet. If there is one already, the
        first append raises Fenced."""
        ...

    async def open(self, first: TraceEvent) -> RunJournal:
        """Store `first`, or take over the journal that an earlier executor started."""
        ...

    def note(self, entry: TraceEvent, size: int = 0) -> None:
        """Add an entry whose values have `size` bytes of JSON. Raises the error of an append that
        has failed meanwhile."""
        ...

    async def append(self) -> None:
        """Wait until all entries so far are stored."""
        ...

    async def resume(self, mark: ParkMark) -> None:
        """Store that the parked run goes on, and add the mark to the journal."""
        ...

    async def finish(self, last: RunFinished | WorkflowParked) -> None:
        """Store all entries so far, the last of them in the message that ends or parks the run."""
        ...

    async def close(self) -> None:
        """Try for a second to store what is not stored, unless an append has failed; append nothing
        after that."""
        ...

    @property
    def unstored(self) -> int:
        """The number of entries, the journal's last ones, that are not stored yet."""
        ...


class Tools(Protocol):
    """Makes tool calls."""

    async def call(self, query: CallTool) -> ToolOutcome:
        """Make the call unless it was made before, and return its outcome. Raises
        GatewayUnreachable."""
        ...


OpenJournal = Callable[[RunWorkflow], JournalStore]
