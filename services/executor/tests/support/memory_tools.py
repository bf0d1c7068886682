"""In-memory tools for tests, with the gateway's guarantee: one call per idempotency key."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from uuid import UUID

from pydantic import JsonValue
from typing_extensions import override

from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_executor.ports import Tools

MemoryTool = Callable[[JsonObject], Awaitable[ToolOutcome]]


class MemoryTools(Tools):
    """Calls the functions in `tools`; other tools return their arguments.

    `made` counts the calls actually made, by tool; `asked` has every query in order.
    """

    def __init__(self, tools: dict[str, MemoryTool] | None = None) -> None:
        self.tools = tools or {}
        self.made: Counter[str] = Counter()
        self.asked: list[CallTool] = []
        self._outcomes: dict[UUID, asyncio.Task[ToolOutcome]] = {}

    @override
    async def call(self, query: CallTool) -> ToolOutcome:
        self.asked.append(query)
        if query.idempotency_key not in self._outcomes:
            self.made[query.tool] += 1
            self._outcomes[query.idempotency_key] = asyncio.create_task(self._make(query))
        return await asyncio.shield(self._outcomes[query.idempotency_key])

    async def _make(self, query: CallTool) -> ToolOutcome:
        tool = self.tools.get(query.tool)
        return await tool(query.args) if tool else ToolOutcome(status="ok", result=query.args)


def answering(result: JsonValue) -> MemoryTool:
    """Build a tool that always returns this result."""
    return ending(ToolOutcome(status="ok", result=result))


def ending(outcome: ToolOutcome) -> MemoryTool:
    """Build a tool whose calls always have this outcome."""

    async def end(_: JsonObject) -> ToolOutcome:
        return outcome

    return end
