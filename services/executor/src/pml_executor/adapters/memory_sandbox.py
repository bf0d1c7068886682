"""Sandboxes without a process, for tests: programs are coroutines, looked up by their code."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject
from pml_executor.domain.protocol import (
    Answer,
    BranchNote,
    CallMade,
    LogNote,
    LoopNote,
    Noted,
    Program,
    ProgramMessage,
    Returned,
    Threw,
)
from pml_executor.ports import SandboxUnavailable


class ToolFailed(Exception):
    """A tool's error, as the program sees it."""

    def __init__(self, call: int, message: str) -> None:
        super().__init__(message)
        self.call = call


class ProgramApi:
    """What a program finds bound."""

    def __init__(self, say: Callable[[ProgramMessage], None]) -> None:
        self._say = say
        self._waiting: dict[int, asyncio.Future[JsonValue]] = {}
        self._made = 0

    async def call(self, node: str | None, tool: str, args: JsonObject | None = None) -> JsonValue:
        """Call a tool. Raises ToolFailed."""
        number, self._made = self._made, self._made + 1
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._say(CallMade(kind="call", id=number, node=node, tool=tool, args=args or {}))
        return await self._waiting[number]

    def decide(self, node: str, value: bool) -> bool:
        """Report a condition and return it."""
        self.took(node, "true" if value else "false")
        return value

    def took(self, node: str, outcome: str, counted: int = 0) -> None:
        """Report which way a decision went."""
        note = BranchNote(type="decision", node=node, outcome=outcome, counted=counted)
        self._say(Noted(kind="noted", notes=(note,)))

    def round(self, node: str, counted: int = 0) -> None:
        """Report that a round of a loop begins."""
        note = LoopNote(type="loop", node=node, counted=counted)
        self._say(Noted(kind="noted", notes=(note,)))

    def log(self, message: str) -> None:
        """Write to the console."""
        note = LogNote(type="log", level="info", message=message)
        self._say(Noted(kind="noted", notes=(note,)))

    def settle(self, answer: Answer) -> None:
        """A call ended."""
        future = self._waiting.pop(answer.id)
        if answer.ok:
            future.set_result(answer.value)
        else:
            future.set_exception(ToolFailed(answer.id, answer.message))


MemoryProgram = Callable[[ProgramApi, JsonObject], Awaitable[JsonValue]]


class MemorySandbox:
    """See Sandbox."""

    def __init__(self, programs: Mapping[str, MemoryProgram]) -> None:
        self._programs = programs
        self._said: asyncio.Queue[ProgramMessage] = asyncio.Queue()
        self._api = ProgramApi(self._said.put_nowait)
        self._task: asyncio.Task[None] | None = None

    async def run(self, program: Program) -> None:
        """See Sandbox."""
        self._task = asyncio.create_task(self._run(program))

    async def receive(self) -> ProgramMessage:
        """See Sandbox."""
        return await self._said.get()

    def answer(self, answer: Answer) -> None:
        """See Sandbox."""
        self._api.settle(answer)

    def kill(self) -> None:
        """Stop the program wherever it is."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Stop it and wait until it has."""
        self.kill()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, program: Program) -> None:
        try:
            value = await self._programs[program.code](self._api, program.args)
        except ToolFailed as error:
            self._said.put_nowait(_threw(error, error.call))
        except Exception as error:  # noqa: BLE001 - a program's error is its outcome
            self._said.put_nowait(_threw(error, None))
        else:
            self._said.put_nowait(Returned(kind="returned", value=value))


class MemoryPool:
    """See SandboxPool; `leased` counts the sandboxes handed out."""

    def __init__(self, programs: Mapping[str, MemoryProgram]) -> None:
        self._programs = programs
        self.leased = 0
        self.problem: str | None = None

    @asynccontextmanager
    async def lease(self) -> AsyncGenerator[MemorySandbox]:
        """See SandboxPool."""
        if self.problem is not None:
            raise SandboxUnavailable(self.problem)
        self.leased += 1
        sandbox = MemorySandbox(self._programs)
        try:
            yield sandbox
        finally:
            await sandbox.close()


def _threw(error: Exception, call: int | None) -> Threw:
    return Threw(
        kind="threw",
        phase="run",
        call=call,
        name=type(error).__name__,
        message=str(error),
        line=None,
        column=None,
    )
