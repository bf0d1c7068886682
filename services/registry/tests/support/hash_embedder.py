"""Embeddings without a model, for tests: texts that share words have similar vectors."""

import hashlib
import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")


class HashEmbedder:
    """Sums one random direction per word; deterministic on every machine."""

    model_name: ClassVar[str] = "hash"
    dimension: ClassVar[int] = 384

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors (n, dimension)."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            words = _WORD.findall(text.lower()) or [""]
            total = np.sum([self._direction(word) for word in words], axis=0)
            row[:] = total / np.linalg.norm(total)
        return vectors

    def rest(self) -> None:
        """Nothing to free."""

    def _direction(self, word: str) -> NDArray[np.float64]:
        digest = hashlib.sha256(word.encode("utf-8", "ignore")).digest()
        return np.random.default_rng(int.from_bytes(digest[:8])).standard_normal(self.dimension)
