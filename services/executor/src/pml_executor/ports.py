"""Ports of a run: sandboxes, the journal and tools."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from pml_common.contracts.error import ErrorKind
from pml_common.contracts.executor import ParkMark, RunWorkflow
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
        """Return the program's next message; can be cancelled. Raises SandboxBroken."""
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
    """One run's journal. Raises Fenced as soon as another executor has taken it over."""

    async def open(self, first: TraceEvent) -> RunJournal:
        """Start the journal with `first`, or take over the one that an earlier executor started."""
        ...

    def note(self, entry: TraceEvent) -> None:
        """Queue an entry, which is stored before whatever is appended next."""
        ...

    async def append(self, *entries: TraceEvent) -> None:
        """Store these entries after all queued ones, and add them to the journal."""
        ...

    @property
    def sequence(self) -> int:
        """The sequence of the journal's last append; valid once it is open."""
        ...

    async def mark(self, mark: ParkMark) -> None:
        """Store all queued entries and then the mark, and add them to the journal; no other append
        may be under way."""
        ...


class Tools(Protocol):
    """Makes tool calls."""

    async def call(self, query: CallTool) -> ToolOutcome:
        """Make the call unless it was made before, and return its outcome. Raises
        GatewayUnreachable."""
        ...


OpenJournal = Callable[[RunWorkflow], JournalStore]
