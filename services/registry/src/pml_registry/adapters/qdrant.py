"""Vectors in Qdrant (ADR 0018): one collection per embedding model, the scope as tenant."""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID, uuid5

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ApiException
from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_registry.domain.ranking import Kind
from pml_registry.ports.vectors import (
    EmbeddingModel,
    IndexUnavailable,
    Near,
    Point,
    PointKey,
    Vector,
    VectorIndex,
)

_POINTS: Final = UUID("6d9d6c1b-5f0c-4c4e-9d51-6a3f5c0d2a18")
_FIELDS: Final = ("org", "project", "kind", "id")
_TENANT_LINKS: Final = 16
"""Links of a vector in the graph of its tenant; there is no graph across tenants."""


class QdrantIndex(VectorIndex):
    """`timeout_s` bounds each operation."""

    def __init__(self, client: AsyncQdrantClient, *, timeout_s: float) -> None:
        self._client = client
        self._timeout_s = timeout_s

    @classmethod
    def at(cls, url: str, api_key: str | None, *, timeout_s: float) -> "QdrantIndex":
        """Connect lazily to a server."""
        client = AsyncQdrantClient(
            url, api_key=api_key, timeout=max(1, round(timeout_s)), check_compatibility=False
        )
        return cls(client, timeout_s=timeout_s)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    @override
    async def prepare(self, model: EmbeddingModel) -> bool:
        name = collection_of(model.name)
        async with self._bounded():
            if await self._client.collection_exists(name):
                return False
            await self._client.create_collection(
                name,
                vectors_config=models.VectorParams(
                    size=model.dimension, distance=models.Distance.COSINE
                ),
                hnsw_config=models.HnswConfigDiff(m=0, payload_m=_TENANT_LINKS),
            )
            tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
            await self._client.create_payload_index(name, "scope", tenant)
            await self._client.create_payload_index(name, "kind", models.PayloadSchemaType.KEYWORD)
        return True

    @override
    async def upsert(self, model: str, points: Sequence[Point]) -> None:
        stored = [
            models.PointStruct(
                id=point_id(point.key), vector=list(point.vector), payload=_payload(point.key)
            )
            for point in points
        ]
        if stored:
            async with self._bounded():
                await self._client.upsert(collection_of(model), stored, wait=True)

    @override
    async def delete(self, model: str, keys: Sequence[PointKey]) -> None:
        ids = models.PointIdsList(points=[point_id(key) for key in keys])
        if keys:
            async with self._bounded():
                await self._client.delete(collection_of(model), ids, wait=True)

    @override
    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[Near]:
        where = models.Filter(must=[_equals("scope", _tenant(scope)), _equals("kind", kind)])
        async with self._bounded():
            found = await self._client.query_points(
                collection_of(model),
                query=list(vector),
                query_filter=where,
                limit=limit,
                with_payload=["id"],
            )
        return [Near((point.payload or {})["id"], point.score) for point in found.points]

    @override
    async def count(self, model: str) -> int:
        async with self._bounded():
            return (await self._client.count(collection_of(model), exact=True)).count

    @override
    async def keys(
        self, model: str, after: str | None, limit: int
    ) -> tuple[Sequence[PointKey], str | None]:
        async with self._bounded():
            found, following = await self._client.scroll(
                collection_of(model), limit=limit, offset=after, with_payload=list(_FIELDS)
            )
        keys = [_key(record.payload or {}) for record in found]
        return keys, None if following is None else str(following)

    @override
    async def drop(self, model: str) -> None:
        async with self._bounded():
            if await self._client.collection_exists(collection_of(model)):
                await self._client.delete_collection(collection_of(model))

    @asynccontextmanager
    async def _bounded(self) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except TimeoutError as late:
            raise IndexUnavailable(f"Qdrant: no answer within {self._timeout_s:g} s") from late
        except (ApiException, OSError) as error:
            raise IndexUnavailable(f"Qdrant: {_said(error)}") from error
        except ValueError as error:  # of the local mode
            if "not found" not in str(error):
                raise
            raise IndexUnavailable(f"Qdrant: {_said(error)}") from error


def collection_of(model: str) -> str:
    """Return the collection of a model: readable, and different for each."""
    readable = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:60]
    return f"pml-{readable}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"


def point_id(key: PointKey) -> str:
    """Return the id of a point: the same for the same key, whoever stores it."""
    return str(uuid5(_POINTS, "\n".join((key.org, key.project, key.kind, key.id))))


def _payload(key: PointKey) -> dict[str, str]:
    values = (key.org, key.project, key.kind, key.id)
    return {"scope": _tenant(key.scope), **dict(zip(_FIELDS, values, strict=True))}


def _key(payload: Mapping[str, Any]) -> PointKey:
    return PointKey(*(payload[field] for field in _FIELDS))


def _tenant(scope: Scope) -> str:
    return f"{scope.org}/{scope.project}"


def _equals(field: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
