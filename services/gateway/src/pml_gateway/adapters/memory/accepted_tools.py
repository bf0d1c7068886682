"""Accepted definitions of tools in memory; passes the same contract suite as those in Postgres."""

from collections.abc import Sequence
from datetime import datetime

from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_gateway.ports import AcceptedTools


class MemoryAcceptedTools(AcceptedTools):
    def __init__(self) -> None:
        self._accepted: dict[tuple[Scope, str], ToolDefinition] = {}

    @override
    async def meet(
        self, scope: Scope, tools: Sequence[ToolDefinition], at: datetime
    ) -> Sequence[ToolDefinition]:
        return [self._accepted.setdefault((scope, tool.tool_id), tool) for tool in tools]

    @override
    async def accept(
        self, scope: Scope, tools: Sequence[ToolDefinition], by: str, at: datetime
    ) -> None:
        self._accepted.update({(scope, tool.tool_id): tool for tool in tools})
