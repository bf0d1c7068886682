"""Hashes of programs, made anew from their texts."""

import asyncio
import hashlib

from pml_analysis.capability_reading import code_hash_of

_REMEMBERED = 10_000


class CodeHashes:
    """Reads each text once, in a thread, and remembers the latest; see `ports.CodeHashing`."""

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._known: dict[bytes, str | None] = {}
        self._most = most

    async def hash_of(self, code: str) -> str | None:
        """See `ports.CodeHashing`."""
        text = hashlib.sha256(code.encode()).digest()
        if text in self._known:
            return self._known[text]
        found = self._known[text] = await asyncio.to_thread(code_hash_of, code)
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return found
