"""The embedded stack: NATS and Postgres at once, then the services at once; ended in reverse."""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from time import monotonic

from pml_local.composition import Composition, StackOptions, compose
from pml_local.events import (
    Event,
    OnEvent,
    PartReady,
    StackReady,
    StackStopped,
    StackStopping,
    ignore,
)
from pml_local.folder import open_folder
from pml_local.parts import Part
from pml_local.state import PartState, StackState, end_leftovers, remove_state, write_state
from pml_local.supervised import SupervisedPart


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
        self._given_up: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._made: Composition | None = None
        self._ready = False

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
        named = {kept.part.name: kept for kept in (*self._servers, *self._services)}
        await named[name].restart()

    async def failure(self) -> Exception:
        """Wait until a part is given up, and return why."""
        return await asyncio.shield(self._given_up)

    async def start(self) -> None:
        """Bring everything up; raises StackError. Call `stop` in any case."""
        began = monotonic()
        folder = self._held.enter_context(open_folder(self.home))
        await asyncio.to_thread(end_leftovers, self.home)
        self._held.callback(remove_state, self.home)
        made = self._made = await asyncio.to_thread(compose, self._options, folder)
        self.url, self.nats_url, self.postgres_dsn = made.url, made.nats.url, made.postgres.dsn()
        self.approver_key = made.approver_key
        self._held.callback(made.approver_key.unlink, missing_ok=True)
        self._servers = self._supervise([made.nats, made.postgres])
        await _start_all(self._servers)
        self._services = self._supervise(made.services)
        await _start_all(self._services)
        self._ready = True
        self._record()
        self._on_event(StackReady(self.url, self.home, monotonic() - began))

    async def stop(self) -> None:
        """End every part, services first, and free the folder; safe in any state."""
        self._ready = False
        if not self._servers:
            self._held.close()
            return
        self._on_event(StackStopping())
        await _stop_all(self._services)
        await _stop_all(self._servers)
        self._held.close()
        self._on_event(StackStopped())

    def kill(self) -> None:
        """SIGKILL every part: for one who does not want to wait for a `stop` under way."""
        for kept in (*self._services, *self._servers):
            kept.kill()

    def _supervise(self, parts: Sequence[Part]) -> list[SupervisedPart]:
        return [SupervisedPart(part, self._observe, self._give_up) for part in parts]

    def _observe(self, event: Event) -> None:
        if self._ready and isinstance(event, PartReady):
            self._record()
        self._on_event(event)

    def _give_up(self, error: Exception) -> None:
        if not self._given_up.done():
            self._given_up.set_result(error)

    def _record(self) -> None:
        state = StackState(
            pid=os.getpid(),
            url=self.url,
            nats_url=self.nats_url,
            postgres_dsn=self.postgres_dsn,
            parts=self.parts,
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
