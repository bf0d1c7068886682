"""What a run needs of the world."""

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
"""Unix time in milliseconds, as the bus has it: entries of several executors are compared."""


class SandboxBroken(Exception):
    """The sandbox cannot go on: the program broke out of its interface, or the process is gone."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind


class SandboxUnavailable(Exception):
    """No sandbox could be had in time; try again later."""


class GatewayUnreachable(Exception):
    """The gateway did not answer in time; nobody here knows whether the call was made."""


class Sandbox(Protocol):
    """What runs one program for whoever leased it."""

    async def run(self, program: Program) -> None:
        """Start the program; once in a lease."""
        ...

    async def receive(self) -> ProgramMessage:
        """What the program says next; can be cancelled. Raises SandboxBroken."""
        ...

    def answer(self, answer: Answer) -> None:
        """Hand over how a call ended; answers arrive in the order of these calls."""
        ...

    def pause(self) -> None:
        """Have the program say `Paused` once it has said all that it is about to say."""
        ...

    def kill(self) -> None:
        """Stop the program now, wherever it is; no other will run here."""
        ...

    def finish(self) -> None:
        """The program has ended by itself and its run is in order: stop what it left under way."""
        ...


class SandboxPool(Protocol):
    """Where sandboxes come from."""

    def lease(self, owner: Scope | None) -> AbstractAsyncContextManager[Sandbox]:
        """A sandbox that nobody but this owner ever used, nor will, and without one nobody at all;
        no earlier program is left in it, and this one is stopped when the block ends. Raises
        SandboxUnavailable."""
        ...


class JournalStore(Protocol):
    """One run's journal. Raises Fenced as soon as another executor has it."""

    async def open(self, first: TraceEvent) -> RunJournal:
        """Begin the journal with `first`, or take over the one that an earlier executor began."""
        ...

    def note(self, entry: TraceEvent) -> None:
        """Store an entry before whatever is appended next."""
        ...

    async def append(self, *entries: TraceEvent) -> None:
        """Return when these, and all that was noted before, are stored and in the journal."""
        ...

    @property
    def sequence(self) -> int:
        """The sequence of the journal's last append, once it is open."""
        ...

    async def mark(self, mark: ParkMark) -> None:
        """Return when all that was noted before and then the mark are stored and in the journal;
        nothing else may be under way."""
        ...


class Tools(Protocol):
    """What makes tool calls."""

    async def call(self, query: CallTool) -> ToolOutcome:
        """How the call ended, now or earlier. Raises GatewayUnreachable."""
        ...


OpenJournal = Callable[[RunWorkflow], JournalStore]
