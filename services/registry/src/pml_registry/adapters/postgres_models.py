"""Embedding models and missing vectors in Postgres, schema `registry`."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
from typing_extensions import override

from pml_common.contracts.tool import ToolDefinition
from pml_common.storage.columns import columns
from pml_common.storage.pool import Pool, connection, transaction
from pml_common.storage.queries import load_queries
from pml_registry.adapters.postgres_vectors import key_of, put_vectors
from pml_registry.domain.documents import tool_summary
from pml_registry.domain.ranking import Kind
from pml_registry.ports.vectors import (
    EmbeddingModel,
    EmbeddingModels,
    Point,
    PointKey,
    StoredModel,
    Unembedded,
    Vector,
)

_SQL = load_queries("pml_registry")
_AT_ONCE = 5000
_HOLD: Mapping[Kind, str] = {"tool": "hold-tools", "capability": "hold-capabilities"}


class PostgresEmbeddingModels(EmbeddingModels):
    """Models and vectors of all scopes; changes of models wait for each other."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @override
    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[bool]:
        async with transaction(self._pool) as session:
            yield await session.fetchval(_SQL["take-embedding-turn"])

    @override
    async def all(self) -> Sequence[StoredModel]:
        async with connection(self._pool) as session:
            return [stored_model(row) for row in await session.fetch(_SQL["embedding-models"])]

    @override
    async def begin(self, model: EmbeddingModel) -> None:
        async with transaction(self._pool) as session:
            await session.execute(_SQL["lock-models"])
            known = await session.fetchrow(_SQL["known-model"], model.name)
            if known is not None and known["dimension"] != model.dimension:
                raise ValueError(
                    f"the embedding model {model.name} makes vectors of {model.dimension} numbers, "
                    f"those stored have {known['dimension']}: give the other model another name"
                )
            # Another one in preparation is given up; the serving one goes on until this is ready.
            await session.execute(_SQL["retire-models"], "preparing", model.name)
            await session.execute(_SQL["begin-model"], model.name, model.dimension)
            if known is None:
                await session.execute(_SQL["prepare-vectors"], model.name, model.dimension)

    @override
    async def unembedded(
        self, model: str, after: PointKey | None, limit: int
    ) -> Sequence[Unembedded]:
        # All capabilities come before all tools.
        found: list[Unembedded] = []
        async with connection(self._pool) as session:
            in_tools = after is not None and after.kind == "tool"
            if not in_tools:
                start = _start(after, str(UUID(int=0)))
                rows = await session.fetch(_SQL["unembedded-capabilities"], model, *start, limit)
                found += [Unembedded(key_of(row), row["text"], row["revision"]) for row in rows]
            if len(found) < limit:
                start = _start(after if in_tools else None, "")
                left = limit - len(found)
                rows = await session.fetch(_SQL["unembedded-tools"], model, *start, left)
                found += [_unembedded_tool(row) for row in rows]
        return found

    @override
    async def fill(
        self, model: str, missing: Sequence[Unembedded], vectors: Sequence[Vector]
    ) -> None:
        computed = {each.key: vector for each, vector in zip(missing, vectors, strict=True)}
        async with transaction(self._pool) as session:
            for kind, hold in _HOLD.items():
                read = [
                    (each.key.org, each.key.project, each.key.id, each.revision)
                    for each in missing
                    if each.key.kind == kind
                ]
                if read:
                    held = map(key_of, await session.fetch(_SQL[hold], *columns(read, 4)))
                    await put_vectors(session, model, [Point(key, computed[key]) for key in held])

    @override
    async def serve(self, model: str, *, needs_index: bool) -> bool:
        async with transaction(self._pool) as session:
            await session.execute(_SQL["lock-models"])
            indexed = await session.fetchval(_SQL["model-to-serve"], model)
            if indexed is None or (needs_index and not indexed):
                return False
            await session.execute(_SQL["retire-models"], "serving", model)
            await session.execute(_SQL["serve-model"], model)
            return True

    @override
    async def forget(self, model: str) -> bool:
        async with connection(self._pool) as session:
            while await session.execute(_SQL["retired-vectors"], model, _AT_ONCE) != "DELETE 0":
                pass
        async with transaction(self._pool) as session:
            await session.execute(_SQL["lock-models"])
            if await session.execute(_SQL["forget-model"], model) == "DELETE 0":
                return False
            await session.execute(_SQL["discard-vectors"], model)
            return True


def stored_model(row: asyncpg.Record) -> StoredModel:
    """Parse a row of `embedding_models`."""
    model = EmbeddingModel(row["model"], row["dimension"])
    return StoredModel(model, row["state"], row["indexed"], row["for_s"])


def _start(after: PointKey | None, first: str) -> tuple[str, str, str]:
    return ("", "", first) if after is None else (after.org, after.project, after.id)


def _unembedded_tool(row: asyncpg.Record) -> Unembedded:
    tool = ToolDefinition.model_validate_json(row["text"])
    return Unembedded(key_of(row), tool_summary(tool), row["revision"])
