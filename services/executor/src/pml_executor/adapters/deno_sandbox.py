"""One Deno process that runs programs, one at a time (runtime/host.js)."""

import asyncio
import logging
import secrets
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pml_common.contracts.error import ErrorKind
from pml_executor.adapters.cgroups import Group, Groups
from pml_executor.adapters.child import Child
from pml_executor.adapters.launch import Launch, Plain
from pml_executor.adapters.threads import (
    Outline,
    can_tell,
    ends_at,
    gone,
    outline,
    workers_and_outline,
)
from pml_executor.adapters.watchdog import Watchdog, hold_to, renew_processor_time
from pml_executor.adapters.wire import Wire
from pml_executor.domain.deaths import Death, cause_of
from pml_executor.domain.protocol import (
    Answer,
    Hello,
    HostSaid,
    Pause,
    Program,
    ProgramMessage,
)
from pml_executor.domain.resources import Resources
from pml_executor.domain.walls import ENVIRONMENT, NO_WALLS, Walls
from pml_executor.ports import SandboxBroken, SandboxUnavailable

log = logging.getLogger(__name__)

_END_PATIENCE_S = 5.0
_RENEW_PATIENCES = 3
"""Times as long as for its stop a host has for the next Worker's start: one that does not get the
order must not hold up the next run."""
_LATE_MESSAGES = 1000
_REMOVALS = 20
_REMOVAL_INTERVAL_S = 0.01
_HOST_ERRORS: dict[str, ErrorKind] = {
    "breach": "rejected",
    "oversize": "output_limit",
    "lost": "internal",
    "ended": "user_error",
}


async def _nothing() -> str:
    return ""


@dataclass(frozen=True)
class DenoCommand:
    """How a process is started, and what it is held to; `worker` has the code of its Workers."""

    argv: Sequence[str]
    max_message_bytes: int
    max_heap_mib: int
    worker: Callable[[], Awaitable[str]] = _nothing
    start_patience_s: float = 10.0
    stop_patience_s: float = 1.0
    launch: Launch = field(default_factory=Plain)
    walls: Walls = NO_WALLS
    resources: Resources = field(default_factory=Resources)
    groups: Groups | None = None


class DenoSandbox:
    """See Sandbox. Made by `start`; `close` leaves nothing of it.

    A program that came to its end by itself is stopped by `finish`, and `renew` makes the process
    ready for another, in a fresh Worker, once the kernel shows that the former one is gone.
    """

    def __init__(self, child: Child, command: DenoCommand, secret: str) -> None:
        self._child = child
        self._command = command
        self._wire = Wire(child, secret, command.max_message_bytes)
        self._watchdog = Watchdog(child.pid, command.resources, child.kill)
        self._group: Group | None = None
        self._workers: frozenset[int] = frozenset()
        self._first: Outline | None = None
        self._runs = 0
        self._finished = False

    @classmethod
    async def start(cls, command: DenoCommand) -> "DenoSandbox":
        """A process whose Worker waits for its program. Raises SandboxUnavailable."""
        try:
            code = await command.worker()
            async with asyncio.timeout(command.start_patience_s):
                child = await command.launch(command.argv, ENVIRONMENT)
        except OSError as error:  # among them TimeoutError
            raise SandboxUnavailable(f"{command.argv[0]} cannot be started: {error}") from error
        secret = secrets.token_hex(16)
        sandbox = cls(child, command, secret)
        try:
            async with asyncio.timeout(command.start_patience_s):
                most = command.max_message_bytes
                hello = Hello(secret=secret, max_body_bytes=most, worker=code)
                sandbox._wire.write(hello.model_dump_json().encode())
                await sandbox._started()
            sandbox._hold()
        except (TimeoutError, SandboxBroken, OSError) as error:
            await sandbox.close()
            why = str(error) or f"not ready within {command.start_patience_s:g} s"
            raise SandboxUnavailable(f"a sandbox process did not start: {why}") from error
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._child.returncode is None

    @property
    def finished(self) -> bool:
        """Whether it may be used again, if it can be renewed."""
        return self._finished

    async def run(self, program: Program) -> None:
        """See Sandbox."""
        self._runs += 1
        self._finished = False
        if self._runs > 1:
            renew_processor_time(self.pid, self._command.resources)
        self._watchdog.start()
        self._wire.write(program.model_dump_json().encode(), "program")

    async def receive(self) -> ProgramMessage:
        """See Sandbox."""
        message = await self._next()
        if not isinstance(message, HostSaid):
            return message
        raise SandboxBroken(_HOST_ERRORS.get(message.kind, "internal"), message.message)

    def answer(self, answer: Answer) -> None:
        """See Sandbox."""
        if not self._finished:
            self._wire.write(answer.model_dump_json().encode(), "program")

    def pause(self) -> None:
        """See Sandbox."""
        if not self._finished:
            self._wire.write(Pause().model_dump_json().encode(), "program")

    def finish(self) -> None:
        """See Sandbox."""
        if self._runs < self._command.resources.runs and len(self._workers) == 1:
            self._finished = True
            self._wire.order("stop")
        else:
            self.kill()

    async def renew(self) -> bool:
        """Whether it can run another program, as well as if it were new; the watch over the last
        one ends with that one's Worker."""
        if not self._finished:
            return False
        try:
            async with asyncio.timeout(self._command.stop_patience_s):
                await self._stopped()
                nonce = await self._wire.check()
            self._watchdog.stop()
            async with asyncio.timeout(_RENEW_PATIENCES * self._command.stop_patience_s):
                await self._started(nonce)
        except (TimeoutError, SandboxBroken) as error:
            log.info("sandbox process %d is not used again: %r", self.pid, error)
            return False
        return self.alive and self._wire.silent and self._as_new() and self._watchdog.fits

    def _as_new(self) -> bool:
        """Whether the kernel sees one Worker in it, and nothing that was not there at first."""
        now = outline(self.pid)
        alone = len(self._workers) == 1 and now is not None and now.within(self._first)
        # Out of processor time it gets that signal; Deno itself handles others, and late.
        return alone and ends_at(self.pid, signal.SIGXCPU)

    def kill(self) -> None:
        """Stop the program now, wherever it is."""
        self._finished = False
        self._child.kill()
        self._watchdog.stop()

    async def close(self) -> None:
        """Kill the process and wait until nothing of it is left."""
        self.kill()
        try:
            await self._child.close(_END_PATIENCE_S)
        except TimeoutError:
            log.error("sandbox process %d does not end", self._child.pid)
        await self._wire.close()
        for _ in range(_REMOVALS):
            if self._group is None or self._group.remove():
                break
            await asyncio.sleep(_REMOVAL_INTERVAL_S)

    def _hold(self) -> None:
        """Set limits, before any code but our own runs there. Raises OSError."""
        hold_to(self.pid, self._command.resources)
        if self._command.groups is not None:
            self._group = self._command.groups.new()
            self._group.add(self.pid)

    async def _started(self, nonce: str = "") -> None:
        """A fresh Worker waits for its program."""
        self._wire.order("start", nonce)
        message = await self._next()
        if not (isinstance(message, HostSaid) and message.kind == "ready"):
            raise SandboxBroken("internal", f"its first words were {message}")
        if can_tell():
            self._workers, now = workers_and_outline(self.pid)
            self._first = self._first or now

    async def _stopped(self) -> None:
        """Nothing of the last program is left, nor to be heard."""
        for _ in range(_LATE_MESSAGES):
            message = await self._next()
            if isinstance(message, HostSaid):
                break
        else:
            raise SandboxBroken("output_limit", "the program goes on after its end")
        if message.kind != "stopped":
            raise SandboxBroken("internal", message.message)
        await gone(self.pid, self._workers)

    async def _next(self) -> ProgramMessage | HostSaid:
        message = await self._wire.read()
        if message is None:
            raise await self._post_mortem()
        return message

    async def _post_mortem(self) -> SandboxBroken:
        """Why the process ended by itself."""
        try:
            status = await self._child.ended(_END_PATIENCE_S)
        except TimeoutError:
            return SandboxBroken("internal", "the sandbox process closed its output")
        last_words = await self._wire.last_words(_END_PATIENCE_S)
        outgrown = self._watchdog.outgrown or (self._group is not None and self._group.ran_out())
        kind, text = cause_of(
            Death(status, last_words, outgrown),
            max_heap_mib=self._command.max_heap_mib,
            max_rss_mib=self._command.resources.max_rss_mib,
        )
        return SandboxBroken(kind, text)
