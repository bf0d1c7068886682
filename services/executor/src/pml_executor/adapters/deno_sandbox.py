"""One Deno process that runs one program (runtime/host.ts)."""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from pml_common.contracts.error import ErrorKind
from pml_executor.adapters.cgroups import Group, Groups
from pml_executor.adapters.child import Child
from pml_executor.adapters.launch import Launch, Plain
from pml_executor.adapters.watchdog import hold_to, outgrown
from pml_executor.domain import frames
from pml_executor.domain.deaths import Death, cause_of
from pml_executor.domain.frames import ForgedOutput, FrameDecoder
from pml_executor.domain.protocol import (
    Answer,
    Breach,
    Hello,
    HostSaid,
    Program,
    ProgramMessage,
    read,
)
from pml_executor.domain.resources import Resources
from pml_executor.domain.walls import ENVIRONMENT, NO_WALLS, Walls
from pml_executor.ports import SandboxBroken, SandboxUnavailable

log = logging.getLogger(__name__)

_READ_BYTES = 65_536
_STDERR_LINES = 40
_END_PATIENCE_S = 5.0
_REMOVALS = 20
_REMOVAL_INTERVAL_S = 0.01
_HOST_ERRORS: dict[str, ErrorKind] = {
    "breach": "rejected",
    "oversize": "output_limit",
    "lost": "internal",
    "ended": "user_error",
}


@dataclass(frozen=True)
class DenoCommand:
    """How a process is started, and what it is held to."""

    argv: Sequence[str]
    max_message_bytes: int
    max_heap_mib: int
    start_patience_s: float = 10.0
    launch: Launch = field(default_factory=Plain)
    walls: Walls = NO_WALLS
    resources: Resources = field(default_factory=Resources)
    groups: Groups | None = None


class DenoSandbox:
    """See Sandbox. Made by `start`; `close` leaves nothing of it."""

    def __init__(self, child: Child, command: DenoCommand, secret: str) -> None:
        self._child = child
        self._command = command
        self._decoder = FrameDecoder(secret, command.max_message_bytes)
        self._inbox: deque[ProgramMessage | HostSaid] = deque()
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._stderr_reader = asyncio.create_task(self._read_stderr())
        self._watchdog: asyncio.Task[None] | None = None
        self._outgrown = False
        self._group: Group | None = None

    @classmethod
    async def start(cls, command: DenoCommand) -> "DenoSandbox":
        """A process whose Worker waits for its program. Raises SandboxUnavailable."""
        try:
            async with asyncio.timeout(command.start_patience_s):
                child = await command.launch(command.argv, ENVIRONMENT)
        except OSError as error:  # among them TimeoutError
            raise SandboxUnavailable(f"{command.argv[0]} cannot be started: {error}") from error
        secret = secrets.token_hex(16)
        sandbox = cls(child, command, secret)
        try:
            async with asyncio.timeout(command.start_patience_s):
                hello = Hello(secret=secret, max_body_bytes=command.max_message_bytes)
                sandbox._write(hello.model_dump_json().encode())
                await sandbox._expect_ready()
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

    async def run(self, program: Program) -> None:
        """See Sandbox."""
        if self._watchdog is None:
            self._watchdog = asyncio.create_task(self._watch(), name=f"watchdog-{self.pid}")
        self._write(program.model_dump_json().encode())

    async def receive(self) -> ProgramMessage:
        """See Sandbox."""
        message = await self._next()
        if not isinstance(message, HostSaid):
            return message
        raise SandboxBroken(_HOST_ERRORS.get(message.kind, "internal"), message.message)

    def answer(self, answer: Answer) -> None:
        """See Sandbox."""
        self._write(answer.model_dump_json().encode())

    def kill(self) -> None:
        """Stop the program now, wherever it is."""
        self._child.kill()
        if self._watchdog is not None:
            self._watchdog.cancel()

    async def close(self) -> None:
        """Kill the process and wait until nothing of it is left."""
        self.kill()
        try:
            await self._child.close(_END_PATIENCE_S)
        except TimeoutError:
            log.error("sandbox process %d does not end", self._child.pid)
        tasks = [task for task in (self._stderr_reader, self._watchdog) if task is not None]
        self._stderr_reader.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
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

    async def _watch(self) -> None:
        await outgrown(self.pid, self._command.resources.max_rss_mib)
        self._outgrown = True
        self._child.kill()

    async def _expect_ready(self) -> None:
        message = await self._next()
        if not (isinstance(message, HostSaid) and message.kind == "ready"):
            raise SandboxBroken("internal", f"its first words were {message}")

    async def _next(self) -> ProgramMessage | HostSaid:
        while not self._inbox:
            data = await self._child.stdout.read(_READ_BYTES)
            if not data:
                raise await self._post_mortem()
            try:
                self._inbox += [read(frame) for frame in self._decoder.feed(data)]
            except ForgedOutput as error:
                text = f"the program wrote to its process's output: {error}"
                raise SandboxBroken("rejected", text) from error
            except Breach as error:
                raise SandboxBroken("rejected", str(error)) from error
        return self._inbox.popleft()

    def _write(self, body: bytes) -> None:
        self._child.write(frames.encode(body))

    async def _post_mortem(self) -> SandboxBroken:
        """Why the process ended by itself."""
        try:
            status = await self._child.ended(_END_PATIENCE_S)
        except TimeoutError:
            return SandboxBroken("internal", "the sandbox process closed its output")
        await asyncio.wait({self._stderr_reader}, timeout=_END_PATIENCE_S)
        outgrown = self._outgrown or (self._group is not None and self._group.ran_out())
        kind, text = cause_of(
            Death(status, " ".join(self._stderr), outgrown),
            max_heap_mib=self._command.max_heap_mib,
            max_rss_mib=self._command.resources.max_rss_mib,
        )
        return SandboxBroken(kind, text)

    async def _read_stderr(self) -> None:
        while data := await self._child.stderr.read(_READ_BYTES):
            self._stderr += data.decode(errors="replace").splitlines()
