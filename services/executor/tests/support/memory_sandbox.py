"""In-memory sandboxes for tests: programs are coroutines, looked up by their code."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TypedDict

from pydantic import JsonValue
from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_executor.domain.protocol import (
    Answer,
    BranchNote,
    CallMade,
    Entered,
    Failed,
    Left,
    LogNote,
    LoopNote,
    Noted,
    Paused,
    Program,
    ProgramMessage,
    Returned,
    Threw,
)
from pml_executor.ports import Sandbox, SandboxPool, SandboxUnavailable


class ToolFailed(Exception):
    """A tool's error, as raised in the program."""

    def __init__(self, call: int, message: str) -> None:
        super().__init__(message)
        self.call = call


class CapabilityFailed(Exception):
    """A capability's error, as raised in its caller."""

    def __init__(self, capability: int, message: str) -> None:
        super().__init__(message)
        self.capability = capability


@dataclass
class _Shared:
    """State that a program and the capabilities it calls share."""

    send: Callable[[ProgramMessage], None]
    capabilities: Sequence["MemoryProgram"] = ()
    waiting: dict[int, asyncio.Future[JsonValue]] = field(
        default_factory=dict[int, asyncio.Future[JsonValue]]
    )
    calls: "count[int]" = field(default_factory=count)
    entered: "count[int]" = field(default_factory=count)


class ProgramApi:
    """Interface of a program or, where `within` is its number, of one call of a capability; `path`
    prefixes the ids of its nodes."""

    def __init__(self, wire: _Shared, within: int | None = None, path: str = "") -> None:
        self._wire = wire
        self._send = wire.send
        self._within = within
        self._path = path

    async def call(self, node: str | None, tool: str, args: JsonObject | None = None) -> JsonValue:
        """Call a tool. Raises ToolFailed."""
        number = next(self._wire.calls)
        answer = self._wire.waiting[number] = asyncio.get_running_loop().create_future()
        self._send(
            CallMade(
                kind="call",
                id=number,
                within=self._within,
                node=self._node(node, tool),
                tool=tool,
                args=args or {},
            )
        )
        return await answer

    def _node(self, node: str | None, tool: str) -> str | None:
        """Return the node id that the Worker reports: with its path prefix, and named by its tool
        for a call site inside a capability that the analysis did not find."""
        if node is None and self._within is None:
            return None
        return self._path + (node or f"dyn:{tool}")

    async def capability(
        self, node: str, capability: int, args: JsonObject | None = None
    ) -> JsonValue:
        """Call a capability, by its number among those injected. Raises CapabilityFailed."""
        number, at, given = next(self._wire.entered), self._path + node, args or {}
        self._send(
            Entered(
                kind="entered",
                id=number,
                within=self._within,
                node=at,
                capability=capability,
                args=given,
            )
        )
        inner = ProgramApi(self._wire, number, f"{at}/")
        try:
            value = await self._wire.capabilities[capability](inner, given)
        except Exception as error:
            self._send(Failed(kind="failed", id=number, **_failure(error)))
            raise CapabilityFailed(number, str(error)) from error
        self._send(Left(kind="left", id=number, value=value))
        return value

    def decide(self, node: str, value: bool) -> bool:
        """Report a condition and return it."""
        self.took(node, "true" if value else "false")
        return value

    def took(self, node: str, outcome: str, counted: int = 0) -> None:
        """Report the outcome of a decision."""
        note = BranchNote(
            type="decision",
            within=self._within,
            node=self._path + node,
            outcome=outcome,
            counted=counted,
        )
        self._send(Noted(kind="noted", notes=(note,)))

    def round(self, node: str, counted: int = 0) -> None:
        """Report the start of a round of a loop."""
        note = LoopNote(type="loop", within=self._within, node=self._path + node, counted=counted)
        self._send(Noted(kind="noted", notes=(note,)))

    def log(self, message: str) -> None:
        """Write to the console."""
        note = LogNote(type="log", within=self._within, level="info", message=message)
        self._send(Noted(kind="noted", notes=(note,)))

    def settle(self, answer: Answer) -> None:
        """Resolve a call with its answer."""
        future = self._wire.waiting.pop(answer.id)
        if answer.ok:
            future.set_result(answer.value)
        else:
            future.set_exception(ToolFailed(answer.id, answer.message))


MemoryProgram = Callable[[ProgramApi, JsonObject], Awaitable[JsonValue]]


class MemorySandbox(Sandbox):
    """Runs a program as a task of the event loop."""

    def __init__(self, programs: Mapping[str, MemoryProgram]) -> None:
        self._programs = programs
        self._messages: asyncio.Queue[ProgramMessage] = asyncio.Queue()
        self._wire = _Shared(self._messages.put_nowait)
        self._api = ProgramApi(self._wire)
        self._task: asyncio.Task[None] | None = None

    @override
    async def run(self, program: Program) -> None:
        self._wire.capabilities = [self._programs[one.code] for one in program.capabilities]
        self._task = asyncio.create_task(self._run(program))

    @override
    async def receive(self) -> ProgramMessage:
        return await self._messages.get()

    @override
    def answer(self, answer: Answer) -> None:
        self._api.settle(answer)

    @override
    def pause(self) -> None:
        """Send `Paused` after the next round of the loop, in which new tasks start."""
        loop, paused = asyncio.get_running_loop(), Paused(kind="paused")
        loop.call_soon(loop.call_soon, self._messages.put_nowait, paused)

    @override
    def kill(self) -> None:
        if self._task is not None:
            self._task.cancel()

    @override
    def finish(self) -> None:
        self.kill()

    async def close(self) -> None:
        """Stop the program and wait until it has ended."""
        self.kill()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, program: Program) -> None:
        try:
            value = await self._programs[program.code](self._api, program.args)
        except Exception as error:  # noqa: BLE001 - a program's error is its outcome
            self._messages.put_nowait(Threw(kind="threw", **_failure(error)))
        else:
            left = tuple(self._wire.waiting)
            self._messages.put_nowait(Returned(kind="returned", value=value, under_way=left))


class MemoryPool(SandboxPool):
    """Leases in-memory sandboxes; `leased` counts them, and leases fail while `problem` is set."""

    def __init__(self, programs: Mapping[str, MemoryProgram]) -> None:
        self._programs = programs
        self.leased = 0
        self.problem: str | None = None

    @override
    @asynccontextmanager
    async def lease(
        self, owner: Scope | None, *, realm: bool = False
    ) -> AsyncGenerator[MemorySandbox]:
        if self.problem is not None:
            raise SandboxUnavailable(self.problem)
        self.leased += 1
        sandbox = MemorySandbox(self._programs)
        try:
            yield sandbox
        finally:
            await sandbox.close()


class _Failure(TypedDict):
    call: int | None
    capability: int | None
    name: str
    message: str
    line: None
    column: None


def _failure(error: Exception) -> _Failure:
    return _Failure(
        call=error.call if isinstance(error, ToolFailed) else None,
        capability=error.capability if isinstance(error, CapabilityFailed) else None,
        name=type(error).__name__,
        message=str(error),
        line=None,
        column=None,
    )
