"""Tools without a gateway, for tests, with the gateway's promise: one call per idempotency key."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from uuid import UUID

from pydantic import JsonValue

from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject

MemoryTool = Callable[[JsonObject], Awaitable[ToolOutcome]]


class MemoryTools:
    """See Tools. `tools` says what each tool does; the others answer with their arguments.

    `made` counts the calls really made, by tool; `asked` holds every question in order.
    """

    def __init__(self, tools: dict[str, MemoryTool] | None = None) -> None:
        self.tools = tools or {}
        self.made: Counter[str] = Counter()
        self.asked: list[CallTool] = []
        self._outcomes: dict[UUID, asyncio.Task[ToolOutcome]] = {}

    async def call(self, query: CallTool) -> ToolOutcome:
        """See Tools."""
        self.asked.append(query)
        if query.idempotency_key not in self._outcomes:
            self.made[query.tool] += 1
            self._outcomes[query.idempotency_key] = asyncio.create_task(self._make(query))
        return await asyncio.shield(self._outcomes[query.idempotency_key])

    async def _make(self, query: CallTool) -> ToolOutcome:
        tool = self.tools.get(query.tool)
        return await tool(query.args) if tool else ToolOutcome(status="ok", result=query.args)


def answering(result: JsonValue) -> MemoryTool:
    """A tool that always answers this."""
    return ending(ToolOutcome(status="ok", result=result))


def ending(outcome: ToolOutcome) -> MemoryTool:
    """A tool whose calls always end so."""

    async def end(_: JsonObject) -> ToolOutcome:
        return outcome

    return end
