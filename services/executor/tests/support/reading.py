"""Programs that read and write, the appends of their runs, and a bus that stores nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from pydantic import JsonValue

from pml_common.bus.run_journal import read_run
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.memory_sandbox import ProgramApi

READ, WRITE = "fs:read", "fs:write"
Program = Callable[[ProgramApi, JsonObject], Awaitable[JsonValue]]


def calls(*tools: str) -> Program:
    """Build a program that makes these calls in turn."""

    async def program(api: ProgramApi, args: JsonObject) -> JsonValue:
        for number, tool in enumerate(tools):
            await api.call(f"n{number}", tool, {"number": number})
        return "done"

    return program


async def at_once_then_one(api: ProgramApi, args: JsonObject) -> JsonValue:
    await asyncio.gather(*(api.call("n1", READ, {"at": n}) for n in range(3)))
    return await api.call("n2", READ)


PROGRAMS: dict[str, Program] = {
    "read": calls(READ),
    "ten reads": calls(*[READ] * 10),
    "write": calls(WRITE),
    "reads and a write": calls(READ, READ, WRITE, READ),
    "writes": calls(WRITE, WRITE, WRITE),
    "at once": at_once_then_one,
}


def reading(code: str) -> RunWorkflow:
    """Build the command of a run in which only `fs:read` changes nothing."""
    return make_command(code, read_only_tools=[READ])


async def appends(bus: MemoryBus, command: RunWorkflow) -> Sequence[Sequence[str]]:
    """Return the types of the entries of each append."""
    stored = await read_run(bus, command.scope, command.workflow_id, "signed")
    return [[entry.type for entry in append.entries] for _, append in stored.appends]


class Deaf(MemoryBus):
    """A bus that stores nothing and does not answer, as for a dead executor."""

    def __init__(self, bus: MemoryBus) -> None:
        super().__init__(bus.broker)

    async def publish(self, message: Message) -> int:
        await asyncio.Event().wait()
        raise AssertionError
