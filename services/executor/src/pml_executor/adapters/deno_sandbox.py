"""A Deno process that runs programs, one at a time (runtime/host.js)."""

import asyncio
import logging
import secrets
import signal

from typing_extensions import override

from pml_common.contracts.error import ErrorKind
from pml_executor.adapters.cgroups import Group
from pml_executor.adapters.child import Child
from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.frame_channel import FrameChannel
from pml_executor.adapters.process_starter import SandboxProcess
from pml_executor.adapters.procfs import (
    ThreadSnapshot,
    can_inspect_threads,
    has_default_action,
    thread_snapshot,
    workers_and_snapshot,
    workers_gone,
)
from pml_executor.adapters.watchdog import Watchdog, apply_limits, extend_cpu_limit
from pml_executor.domain.endings import ProcessExit, exit_error
from pml_executor.domain.protocol import (
    Answer,
    HostMessage,
    Pause,
    Program,
    ProgramMessage,
)
from pml_executor.domain.walls import ENVIRONMENT
from pml_executor.ports import NeedsWorker, SandboxBroken, SandboxUnavailable

log = logging.getLogger(__name__)

_END_TIMEOUT_S = 5.0
_RENEW_TIMEOUT_FACTOR = 3
"""Timeout of the next Worker's start, as a multiple of that of the former one's stop: a host that
does not receive the order must not delay the next run."""
_LATE_MESSAGES = 1000
_REMOVALS = 20
_REMOVAL_INTERVAL_S = 0.01
_HOST_ERRORS: dict[str, ErrorKind] = {
    "breach": "rejected",
    "oversize": "output_limit",
    "lost": "internal",
    "ended": "user_error",
}


class DenoSandbox(SandboxProcess):
    """A sandbox process. Created by `start`; `close` leaves nothing of it.

    `finish` stops a program that ended by itself, and `renew` makes the process ready for another:
    in a fresh Worker, once the kernel shows that the former one is gone, or in a fresh realm of the
    standing Worker. A process that has started a standing Worker starts no other.
    """

    def __init__(self, child: Child, command: DenoCommand, secret: str) -> None:
        self._child = child
        self._command = command
        self._channel = FrameChannel(child, secret, command.max_message_bytes)
        self._watchdog = Watchdog(child.pid, command.resources, child.kill)
        self._group: Group | None = None
        self._workers: frozenset[int] = frozenset()
        self._first: ThreadSnapshot | None = None
        self._runs = 0
        self._finished = False
        self._standing = False
        self._needs_worker = False
        self._end_nonce = ""

    @classmethod
    async def start(cls, command: DenoCommand) -> "DenoSandbox":
        """Start a process whose Worker waits for its program. Raises SandboxUnavailable."""
        try:
            texts, hidden = await command.worker(), command.hidden_modules()
            async with asyncio.timeout(command.start_timeout_s):
                child = await command.launch(command.argv_with(hidden), ENVIRONMENT)
        except OSError as error:  # among them TimeoutError
            raise SandboxUnavailable(f"{command.argv[0]} cannot be started: {error}") from error
        secret = secrets.token_hex(16)
        sandbox = cls(child, command, secret)
        try:
            async with asyncio.timeout(command.start_timeout_s):
                hello = command.hello(secret, texts, hidden)
                sandbox._channel.write(hello.model_dump_json().encode())
                joined = asyncio.create_task(sandbox._join_group())
                try:
                    await sandbox._started()
                finally:
                    await asyncio.shield(joined)  # its thread cannot be cancelled
            apply_limits(sandbox.pid, command.resources)  # before any code but our own runs in it
        except (TimeoutError, SandboxBroken, OSError) as error:
            await sandbox.close()
            why = str(error) or f"not ready within {command.start_timeout_s:g} s"
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
    def in_realm(self) -> bool:
        """Whether the standing Worker runs, in which programs have realms."""
        return self._standing

    @property
    def needs_worker(self) -> bool:
        """Whether the last program could not run in a realm."""
        return self._needs_worker

    @property
    @override
    def alive(self) -> bool:
        return self._child.returncode is None

    @property
    @override
    def finished(self) -> bool:
        return self._finished

    @override
    async def run(self, program: Program) -> None:
        self._runs += 1
        self._finished = False
        if self._runs > 1:
            extend_cpu_limit(self.pid, self._command.resources)
        self._watchdog.start()
        self._needs_worker = False
        self._channel.write(program.model_dump_json().encode(), "program")

    @override
    async def receive(self) -> ProgramMessage:
        message = await self._next()
        if isinstance(message, HostMessage) and message.kind == "unsuited" and self._standing:
            self._needs_worker = True
            raise NeedsWorker(message.message)
        if not isinstance(message, HostMessage):
            return message
        raise SandboxBroken(_HOST_ERRORS.get(message.kind, "internal"), message.message)

    @override
    def answer(self, answer: Answer) -> None:
        if not self._finished:
            self._channel.write(answer.model_dump_json().encode(), "program")

    @override
    def pause(self) -> None:
        if not self._finished:
            self._channel.write(Pause().model_dump_json().encode(), "program")

    @override
    def finish(self) -> None:
        if self._runs < self._command.resources.runs and len(self._workers) == 1:
            self._finished = True
            self._end_nonce = secrets.token_hex(16)
            if self._standing:
                self._channel.send_order("end", self._end_nonce)
            else:
                self._channel.send_order("stop")
        else:
            self.kill()

    @override
    async def renew(self, *, realm: bool = False) -> bool:
        """Prepare another run and return whether the process is as good as new; the watchdog of
        the last run stops once that one's Worker or realm is gone."""
        if not self._finished or (self._standing and not realm):
            return False
        try:
            if self._standing:
                await self._leave_realm()
            else:
                await self._replace_worker(realm=realm and self._command.may_use_realms())
        except (TimeoutError, SandboxBroken) as error:
            log.info("sandbox process %d is not used again: %r", self.pid, error)
            return False
        return (
            self.alive and self._channel.silent and self._as_new() and self._watchdog.within_bounds
        )

    async def _leave_realm(self) -> None:
        """Wait until the standing Worker has left the last program's realm for good."""
        async with asyncio.timeout(self._command.stop_timeout_s):
            ready = await self._next_of_host()
        if (ready.kind, ready.message) != ("ready", self._end_nonce):
            raise SandboxBroken("internal", f"the standing Worker is not ready: {ready}")
        self._watchdog.stop()

    async def _replace_worker(self, *, realm: bool) -> None:
        """Wait until the last program's Worker is gone, and start another."""
        async with asyncio.timeout(self._command.stop_timeout_s):
            await self._stopped()
            nonce = await self._channel.check()
        self._watchdog.stop()
        async with asyncio.timeout(_RENEW_TIMEOUT_FACTOR * self._command.stop_timeout_s):
            await self._started(nonce, realm=realm)

    def _as_new(self) -> bool:
        """Whether the kernel shows one Worker in it, and nothing that was not there at first."""
        now = thread_snapshot(self.pid)
        alone = len(self._workers) == 1 and now is not None and now.adds_nothing_to(self._first)
        # The signal it gets when out of processor time; Deno itself handles others, and late.
        return alone and has_default_action(self.pid, signal.SIGXCPU)

    @override
    def kill(self) -> None:
        self._finished = False
        self._child.kill()
        self._watchdog.stop()

    @override
    async def close(self) -> None:
        self.kill()
        try:
            await self._child.close(_END_TIMEOUT_S)
        except TimeoutError:
            log.error("sandbox process %d does not end", self._child.pid)
        await self._channel.close()
        for _ in range(_REMOVALS):
            if self._group is None or self._group.remove():
                break
            await asyncio.sleep(_REMOVAL_INTERVAL_S)

    async def _join_group(self) -> None:
        """Move the process into a control group of its own, in a thread: the kernel takes some 10
        ms for that. Raises OSError."""
        if self._command.groups is not None:
            self._group = self._command.groups.new()
            await asyncio.to_thread(self._group.add, self.pid)

    async def _started(self, nonce: str = "", *, realm: bool = False) -> None:
        """Start a fresh Worker, or the standing one, and wait until it is ready for its program."""
        if self._standing:
            raise SandboxBroken("internal", "a process with realms starts no other Worker")
        self._channel.send_order("realm" if realm else "start", nonce)
        message = await self._next()
        if isinstance(message, HostMessage) and message.kind == "unfit" and self._command.realms:
            log.error("programs get out of realms here, so none is used: %s", message.message)
            self._command.realms.refuse(message.message)
        if not (isinstance(message, HostMessage) and message.kind == "ready"):
            raise SandboxBroken("internal", f"its first message was {message}")
        self._standing = realm
        if can_inspect_threads():
            self._workers, now = workers_and_snapshot(self.pid)
            self._first = self._first or now
        if realm:
            self._watchdog.measure()

    async def _stopped(self) -> None:
        """Wait until nothing of the last program is left, and drop its late messages."""
        message = await self._next_of_host()
        if message.kind != "stopped":
            raise SandboxBroken("internal", message.message)
        await workers_gone(self.pid, self._workers)

    async def _next_of_host(self) -> HostMessage:
        """Return the host's next message, and drop a program's late ones before it."""
        for _ in range(_LATE_MESSAGES):
            message = await self._next()
            if isinstance(message, HostMessage):
                return message
        raise SandboxBroken("output_limit", "the program goes on after its end")

    async def _next(self) -> ProgramMessage | HostMessage:
        message = await self._channel.read()
        if message is None:
            raise await self._post_mortem()
        return message

    async def _post_mortem(self) -> SandboxBroken:
        """Return the error that tells why the process ended by itself."""
        try:
            status = await self._child.ended(_END_TIMEOUT_S)
        except TimeoutError:
            return SandboxBroken("internal", "the sandbox process closed its output")
        stderr_tail = await self._channel.stderr_tail(_END_TIMEOUT_S)
        exceeded_memory = self._watchdog.exceeded_memory or (
            self._group is not None and self._group.out_of_memory()
        )
        kind, text = exit_error(
            ProcessExit(status, stderr_tail, exceeded_memory),
            max_heap_mib=self._command.max_heap_mib,
            max_rss_mib=self._command.resources.max_rss_mib,
        )
        return SandboxBroken(kind, text)
