"""The embedded stack: NATS and Postgres at once, then the services at once; ended in reverse."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

from pml_local.absences import Absences
from pml_local.composition import Composition, StackOptions, compose
from pml_local.events import (
    Event,
    OnEvent,
    PartReady,
    ServersAwaited,
    StackReady,
    StackStopped,
    StackStopping,
    ignore,
)
from pml_local.folder import open_folder
from pml_local.mcp_servers import mcp_servers
from pml_local.parts import Part
from pml_local.state import PartState, StackState, end_leftovers, remove_state, write_state
from pml_local.storing import keep_storing
from pml_local.supervised import SupervisedPart

log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 0.05


class Stack:
    """A stack on one data folder; use `embedded_stack`, or `run_until_stopped`."""

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
        self._held = ExitStack()
        self._absences = Absences()
        self._made: Composition | None = None
        self._ready = False
        self._watching: asyncio.Task[None] | None = None

    @property
    def parts(self) -> dict[str, PartState]:
        """The parts that run now."""
        return {
            kept.part.name: PartState(pid=process.pid, port=kept.part.port, log=process.command.log)
            for kept in (*self._servers, *self._services)
            if (process := kept.process) is not None
        }

    def credentials(self, service: str) -> dict[str, str]:
        """Who a service is on this stack's bus, as variables of its environment."""
        if self._made is None:
            raise RuntimeError("the stack does not run")
        return self._made.credentials(service)

    def pid_of(self, name: str) -> int:
        """The process of a part; raises KeyError when it does not run."""
        return self.parts[name].pid

    async def restart(self, name: str) -> None:
        """Stop a part and start it again; raises KeyError, PartFailedError."""
        await self._named(name).restart()

    @asynccontextmanager
    async def without(self, name: str) -> AsyncGenerator[None]:
        """Stop a part until the context exits, then start it again; raises KeyError,
        PartFailedError."""
        kept = self._named(name)
        await kept.stop()
        try:
            yield
        finally:
            await kept.start()

    async def start(self) -> None:
        """Bring everything up; raises StackError. Call `stop` in any case."""
        began = monotonic()
        folder = self._held.enter_context(open_folder(self.home))
        await asyncio.to_thread(end_leftovers, self.home)
        self._held.callback(remove_state, self.home)
        made = self._made = await asyncio.to_thread(compose, self._options, folder)
        self.approver_key = made.approver_key
        self._held.callback(made.approver_key.unlink, missing_ok=True)
        for service in made.services:
            service.hold()
            self._held.callback(service.release)
        self._servers = self._supervise([made.nats, made.postgres])
        await _start_all(self._servers)
        self.nats_url, self.postgres_dsn = made.nats.url, made.postgres.dsn()
        self._services = self._supervise(made.services)
        await _start_all(self._services)
        self.url = made.url
        watching = keep_storing(made.nats, self._servers[0], folder.nats, self._options.look_every)
        self._watching = asyncio.create_task(watching, name="keep storing")
        self._ready = True
        self._record()
        servers = await self._servers_known()
        self._on_event(StackReady(self.url, self.home, monotonic() - began, servers))

    async def stop(self) -> None:
        """End every part, services first, and free the folder; safe in any state."""
        self._ready = False
        if not self._servers:
            self._held.close()
            return
        self._on_event(StackStopping())
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        for service in self._made.services if self._made else ():
            service.release()
        await _stop_all(self._services)
        await _stop_all(self._servers)
        self._held.close()
        self._on_event(StackStopped())

    def kill(self) -> None:
        """SIGKILL every part: for one who does not want to wait for a `stop` under way."""
        for kept in (*self._services, *self._servers):
            kept.kill()

    def _named(self, name: str) -> SupervisedPart:
        named = {kept.part.name: kept for kept in (*self._servers, *self._services)}
        return named[name]

    async def _servers_known(self) -> dict[str, str]:
        """Wait until programs find the tools of every MCP server, or it has failed, for a while;
        what is wrong with each."""
        deadline, told = monotonic() + self._options.servers_within, False
        while True:
            servers = await mcp_servers(urlsplit(self.url).port or 0)
            awaited = tuple(name for name, server in servers.items() if server.awaited)
            if not awaited or monotonic() > deadline:
                return {name: server.trouble for name, server in servers.items()}
            if not told:
                self._on_event(ServersAwaited(awaited))
                told = True
            await asyncio.sleep(_LOOK_AGAIN_S)

    def _supervise(self, parts: Sequence[Part]) -> list[SupervisedPart]:
        return [SupervisedPart(part, self._observe) for part in parts]

    def _observe(self, event: Event) -> None:
        changed = self._absences.observe(event, datetime.now(UTC))
        if self._ready and (changed or isinstance(event, PartReady)):
            try:
                self._record()
            except OSError as error:  # a full disk must not end the watch over the parts
                log.warning("the stack's state cannot be written: %s", error)
        self._on_event(event)

    def _record(self) -> None:
        state = StackState(
            pid=os.getpid(),
            url=self.url,
            nats_url=self.nats_url,
            postgres_dsn=self.postgres_dsn,
            parts=self.parts,
            down=self._absences.parts,
            approver_key=self.approver_key,
        )
        write_state(self.home, state)


@asynccontextmanager
async def embedded_stack(
    options: StackOptions, on_event: OnEvent = ignore
) -> AsyncGenerator[Stack]:
    """A running stack inside the block, nothing of it after; raises StackError."""
    stack = Stack(options, on_event)
    try:
        await stack.start()
        yield stack
    finally:
        await stack.stop()


async def _start_all(parts: Iterable[SupervisedPart]) -> None:
    """Start them at once; the first failure cancels the rest and is raised as it is."""
    starting = [asyncio.create_task(kept.start()) for kept in parts]
    try:
        await asyncio.gather(*starting)
    finally:
        for task in starting:
            task.cancel()
        await asyncio.wait(starting)


async def _stop_all(parts: Iterable[SupervisedPart]) -> None:
    await asyncio.gather(*(kept.stop() for kept in parts))
