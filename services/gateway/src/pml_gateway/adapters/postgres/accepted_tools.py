"""Accepted definitions of tools in Postgres, schema `gateway`."""

from collections.abc import Sequence
from datetime import datetime

from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.storage.columns import scope_columns
from pml_common.storage.queries import load_queries
from pml_common.storage.scoped import ScopedPools
from pml_gateway.adapters.postgres.deadline import with_deadline
from pml_gateway.ports import AcceptedTools

_SQL = load_queries("pml_gateway")


class PostgresAcceptedTools(AcceptedTools):
    """Operations take `patience_s` at most."""

    def __init__(self, pools: ScopedPools, *, patience_s: float = 1.5) -> None:
        self._pools = pools
        self._patience_s = patience_s

    @override
    async def meet(
        self, scope: Scope, tools: Sequence[ToolDefinition], at: datetime
    ) -> Sequence[ToolDefinition]:
        return await with_deadline(self._meet(scope, tools, at), self._patience_s)

    async def _meet(
        self, scope: Scope, tools: Sequence[ToolDefinition], at: datetime
    ) -> Sequence[ToolDefinition]:
        key, ids = scope_columns(scope), [tool.tool_id for tool in tools]
        texts = [tool.model_dump_json() for tool in tools]
        async with self._pools.transaction(scope) as conn:
            await conn.execute(_SQL["trust-tools"], *key, ids, texts, at)
            rows = await conn.fetch(_SQL["accepted-tools"], *key, ids)
        return [ToolDefinition.model_validate_json(row["definition"]) for row in rows]

    @override
    async def accept(
        self, scope: Scope, tools: Sequence[ToolDefinition], by: str, at: datetime
    ) -> None:
        await with_deadline(self._accept(scope, tools, by, at), self._patience_s)

    async def _accept(
        self, scope: Scope, tools: Sequence[ToolDefinition], by: str, at: datetime
    ) -> None:
        ids, texts = [t.tool_id for t in tools], [t.model_dump_json() for t in tools]
        columns = *scope_columns(scope), ids, texts, by, at
        await self._pools.change(scope, _SQL["accept-tools"], *columns)
