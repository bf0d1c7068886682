"""The embedded stack: NATS and Postgres start concurrently, then the services; stopped in
reverse."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

from pml_local.composition import Composition, StackOptions, compose
from pml_local.down_parts import DownParts
from pml_local.errors import PartFailedError
from pml_local.events import (
    Event,
    OnEvent,
    PartReady,
    StackReady,
    StackStopped,
    StackStopping,
    WaitingForMcpServers,
    ignore,
)
from pml_local.folder import DataFolder, open_folder
from pml_local.fork_server import NAME, ForkServer
from pml_local.leftovers import end_leftovers
from pml_local.mcp_servers import mcp_servers
from pml_local.parts import Part
from pml_local.services import Service
from pml_local.state import PartState, StackState, remove_state, write_state
from pml_local.storage_watchdog import watch_storage
from pml_local.supervised import SupervisedPart

log = logging.getLogger(__name__)

_POLL_S = 0.2


class Stack:
    """A stack on one data folder; use `embedded_stack` or `run_until_stopped`."""

    def __init__(self, options: StackOptions, on_event: OnEvent = ignore) -> None:
        self.home = options.home.absolute()
        self.url = ""
        self.nats_url = ""
        self.postgres_dsn = ""
        self.approver_key = Path()
        self._options = options
        self._on_event = on_event
        self._servers: list[SupervisedPart] = []
        self._services: list[SupervisedPart] = []
        self._cleanup = ExitStack()
        self._down = DownParts()
        self._composition: Composition | None = None
        self._forks: ForkServer | None = None
        self._ready = False
        self._watchdog: asyncio.Task[None] | None = None

    @property
    def parts(self) -> dict[str, PartState]:
        """The running parts."""
        return {
            one.part.name: PartState(
                pid=process.pid,
                port=one.part.port,
                log=process.command.log,
                metrics=one.part.metrics_url if isinstance(one.part, Service) else None,
            )
            for one in (*self._servers, *self._services)
            if (process := one.process) is not None
        }

    def credentials(self, service: str) -> dict[str, str]:
        """A service's credentials on this stack, as environment variables."""
        if self._composition is None:
            raise RuntimeError("the stack is not running")
        return self._composition.credentials(service)

    def pid_of(self, name: str) -> int:
        """The pid of a part; raises KeyError when it does not run."""
        return self.parts[name].pid

    async def restart(self, name: str) -> None:
        """Stop a part and start it again; raises KeyError, PartFailedError."""
        await self._part(name).restart()

    @asynccontextmanager
    async def without(self, name: str) -> AsyncGenerator[None]:
        """Stop a part until the context exits, then start it again; raises KeyError,
        PartFailedError."""
        part = self._part(name)
        await part.stop()
        try:
            yield
        finally:
            await part.start()

    async def start(self) -> None:
        """Start everything; raises StackError. Call `stop` in any case."""
        began = monotonic()
        folder = self._cleanup.enter_context(open_folder(self.home))
        await asyncio.to_thread(end_leftovers, self.home)
        self._cleanup.callback(remove_state, self.home)
        await self._start_fork_server(folder)
        made = self._composition = await asyncio.to_thread(compose, self._options, folder)
        self.approver_key = made.approver_key
        self._cleanup.callback(made.approver_key.unlink, missing_ok=True)
        for service in made.services:
            service.launcher = self._forks
            service.hold()
            self._cleanup.callback(service.release)
        self._servers = self._supervise([made.nats, made.postgres])
        await _start_all(self._servers)
        self.nats_url, self.postgres_dsn = made.nats.url, made.postgres.dsn()
        self._services = self._supervise(made.services)
        await _start_all(self._services)
        self.url = made.url
        watchdog = watch_storage(
            made.nats, self._servers[0], folder.nats, self._options.storage_probe_interval
        )
        self._watchdog = asyncio.create_task(watchdog, name="storage watchdog")
        self._ready = True
        self._record()
        servers = await self._await_mcp_servers()
        self._on_event(StackReady(self.url, self.home, monotonic() - began, servers))

    async def stop(self) -> None:
        """Stop every part, services first, and release the folder; safe in any state."""
        self._ready = False
        if not self._servers:
            await self._stop_fork_server()
            self._cleanup.close()
            return
        self._on_event(StackStopping())
        if self._watchdog is not None:
            self._watchdog.cancel()
            await asyncio.wait([self._watchdog])
        for service in self._composition.services if self._composition else ():
            service.release()
        await _stop_all(self._services)
        await self._stop_fork_server()
        await _stop_all(self._servers)
        self._cleanup.close()
        self._on_event(StackStopped())

    def kill(self) -> None:
        """Send SIGKILL to every part, without waiting for a `stop` in progress."""
        for part in (*self._services, *self._servers):
            part.kill()

    async def fails(self) -> None:
        """Wait until the fork server ends, and all services with it, and raise PartFailedError;
        without a fork server, wait for ever."""
        if self._forks is None:
            await asyncio.Event().wait()
            return
        code = await self._forks.process.wait()
        reason = f"ended with code {code}, and all services with it"
        raise PartFailedError(NAME, reason, self._forks.process.command.log)

    async def _start_fork_server(self, folder: DataFolder) -> None:
        """Start it first: it imports while NATS and Postgres start."""
        forked = [spec for spec in self._options.services if spec.is_module]
        if forked:
            modules = dict.fromkeys(each for spec in forked for each in spec.preloads)
            self._forks = await ForkServer.start(folder.log(NAME), [*modules])

    async def _stop_fork_server(self) -> None:
        if self._forks is not None:
            await self._forks.stop()
            self._forks = None

    def _part(self, name: str) -> SupervisedPart:
        return {one.part.name: one for one in (*self._servers, *self._services)}[name]

    async def _await_mcp_servers(self) -> dict[str, str]:
        """Wait, up to `servers_within` seconds, until the tools of every MCP server are
        discoverable or it has failed. Returns the problem of each server."""
        deadline, announced = monotonic() + self._options.servers_within, False
        while True:
            servers = await mcp_servers(urlsplit(self.url).port or 0)
            pending = tuple(name for name, server in servers.items() if server.is_pending)
            if not pending or monotonic() > deadline:
                return {name: server.problem for name, server in servers.items()}
            if not announced:
                self._on_event(WaitingForMcpServers(pending))
                announced = True
            await asyncio.sleep(_POLL_S)

    def _supervise(self, parts: Sequence[Part]) -> list[SupervisedPart]:
        return [SupervisedPart(part, self._observe) for part in parts]

    def _observe(self, event: Event) -> None:
        changed = self._down.observe(event, datetime.now(UTC))
        if self._ready and (changed or isinstance(event, PartReady)):
            try:
                self._record()
            except OSError as error:  # a full disk must not end the supervision
                log.warning("the stack's state cannot be written: %s", error)
        self._on_event(event)

    def _record(self) -> None:
        state = StackState(
            pid=os.getpid(),
            url=self.url,
            nats_url=self.nats_url,
            postgres_dsn=self.postgres_dsn,
            parts=self.parts,
            down=self._down.parts,
            approver_key=self.approver_key,
        )
        write_state(self.home, state)


@asynccontextmanager
async def embedded_stack(
    options: StackOptions, on_event: OnEvent = ignore
) -> AsyncGenerator[Stack]:
    """Run a stack until the context exits; raises StackError."""
    stack = Stack(options, on_event)
    try:
        await stack.start()
        yield stack
    finally:
        await stack.stop()


async def _start_all(parts: Iterable[SupervisedPart]) -> None:
    """Start them concurrently; the first failure cancels the rest and is raised unchanged."""
    starting = [asyncio.create_task(part.start()) for part in parts]
    try:
        await asyncio.gather(*starting)
    finally:
        for task in starting:
            task.cancel()
        await asyncio.wait(starting)


async def _stop_all(parts: Iterable[SupervisedPart]) -> None:
    await asyncio.gather(*(part.stop() for part in parts))
