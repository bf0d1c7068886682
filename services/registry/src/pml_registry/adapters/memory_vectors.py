"""Vectors in memory; tested by the same suite as the other indexes."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_registry.adapters.memory_tables import MemoryTables
from pml_registry.domain.ranking import Kind
from pml_registry.ports.vectors import EmbeddingModel, Near, Point, PointKey, Vector, VectorIndex


class MemoryVectorIndex(VectorIndex):
    """Scans the vectors of the stores in memory; finds no behaviour that is not listed."""

    def __init__(self, tables: MemoryTables | None = None) -> None:
        self._tables = tables or MemoryTables()
        self._vectors = self._tables.vectors
        self._prepared: set[str] = set()

    @override
    async def prepare(self, model: EmbeddingModel) -> bool:
        is_new = model.name not in self._prepared
        self._prepared.add(model.name)
        return is_new

    @override
    async def upsert(self, model: str, points: Sequence[Point]) -> None:
        for point in points:
            self._vectors.setdefault(point.key, {})[model] = point.vector

    @override
    async def delete(self, model: str, keys: Sequence[PointKey]) -> None:
        for key in keys:
            self._vectors.get(key, {}).pop(model, None)

    @override
    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[Near]:
        found = [
            Near(key.id, float(np.dot(of_models[model], vector)))
            for key, of_models in self._vectors.items()
            if (key.scope, key.kind) == (scope, kind) and model in of_models
            if self._is_found(key)
        ]
        return sorted(found, key=lambda each: -each.cosine)[:limit]

    @override
    async def count(self, model: str) -> int:
        return len(self._keys(model))

    @override
    async def keys(
        self, model: str, after: str | None, limit: int
    ) -> tuple[Sequence[PointKey], str | None]:
        start = int(after or 0)
        found = self._keys(model)[start : start + limit]
        return found, str(start + limit) if len(found) == limit else None

    @override
    async def drop(self, model: str) -> None:
        self._prepared.discard(model)
        for of_models in self._vectors.values():
            of_models.pop(model, None)

    def _keys(self, model: str) -> Sequence[PointKey]:
        return sorted(key for key, of_models in self._vectors.items() if model in of_models)

    def _is_found(self, key: PointKey) -> bool:
        if key.kind == "tool":
            return True
        row = self._tables.behaviours.get((key.scope, UUID(key.id)))
        return row is None or row.record.listed
