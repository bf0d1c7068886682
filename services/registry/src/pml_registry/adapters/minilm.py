"""Sentence embeddings by all-MiniLM-L6-v2 with no network and no torch (ADR 0004)."""

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from tokenizers import Tokenizer

from pml_registry.adapters.minilm_encoder import encode
from pml_registry.adapters.minilm_weights import (
    WIDTH,
    Weights,
    load_weights,
    map_checked,
    model_folder,
    release,
)

_MAX_TOKENS = 256
# Tokenizing time is linear in the length; 256 tokens of prose are some 1,200 characters.
_MAX_CHARACTERS = 10_000


class MiniLmEmbedder:
    """Thread-safe; a call uses one core, so run it in a thread: `asyncio.to_thread`. The layers,
    41 MiB, are laid out by the first text and the first after a rest."""

    model_name: ClassVar[str] = "all-MiniLM-L6-v2"
    dimension: ClassVar[int] = WIDTH

    def __init__(self, tokenizer: Tokenizer, data: mmap.mmap) -> None:
        self._tokenizer = tokenizer
        self._data = data
        self._weights: Weights | None = None

    @classmethod
    def load(cls, folder: Path | None = None) -> Self:
        """Read and check the model (about 0.2 s); raises EmbeddingModelError.

        Limits BLAS to one thread in this process: a text is too small to split between cores.
        """
        folder = folder or model_folder()
        tokenizer = Tokenizer.from_buffer(bytes(map_checked(folder, "tokenizer.json")))
        # The file limits to 128 tokens, padded; the model was published with 256. The stub of
        # enable_truncation leaves its **kwargs untyped.
        tokenizer.enable_truncation(_MAX_TOKENS)  # pyright: ignore[reportUnknownMemberType]
        tokenizer.no_padding()
        data = map_checked(folder, "model.safetensors")
        threadpool_limits(limits=1, user_api="blas")
        return cls(tokenizer, data)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors (n, 384) in the given order; only 256 tokens of a text count."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        # A rest during the call leaves it its weights.
        weights = self._weights = self._weights or load_weights(self._data)
        for row, text in zip(vectors, texts, strict=True):
            row[:] = encode(weights, self._token_ids(text))
        return vectors

    def rest(self) -> None:
        """Free the layers and the pages of the words."""
        self._weights = None
        release(self._data)

    def _token_ids(self, text: str) -> NDArray[np.intp]:
        """Token ids with [CLS] and [SEP]; lone surrogates, which JSON allows, are dropped."""
        clean = text[:_MAX_CHARACTERS].encode("utf-8", "ignore").decode("utf-8")
        return np.array(self._tokenizer.encode(clean).ids, dtype=np.intp)
