"""Hashes of programs, computed from their texts."""

import asyncio
import hashlib

from typing_extensions import override

from pml_analysis.capability_reading import code_hash_of, shape_of
from pml_registry.ports import CodeHashing, CodeShape

_CACHE_SIZE = 10_000


class CodeHashes(CodeHashing):
    """Computes hashes in a thread and caches the latest."""

    def __init__(self, most: int = _CACHE_SIZE) -> None:
        self._known: dict[bytes, str | None] = {}
        self._most = most

    @override
    async def hash_of(self, code: str) -> str | None:
        text = hashlib.sha256(code.encode()).digest()
        if text in self._known:
            return self._known[text]
        found = self._known[text] = await asyncio.to_thread(code_hash_of, code)
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return found

    @override
    async def shape_of(self, code: str) -> CodeShape | None:
        found = await asyncio.to_thread(shape_of, code)
        return None if found is None else CodeShape(found.shape_hash, found.makes_calls)
