"""Embeddings by an OpenAI-compatible endpoint."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

import httpx2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError
from typing_extensions import override

from pml_registry.ports.vectors import Embedded, Embedder, EmbedderUnavailable

log = logging.getLogger(__name__)

_MAX_REPLY: Final = 64 * 1024 * 1024
_FIRST_WAIT_S: Final = 0.2
_AGAIN: Final = {408, 409, 425, 429, 500, 502, 503, 504}


class _Vector(BaseModel):
    index: int
    embedding: list[float]


class _Reply(BaseModel):
    data: list[_Vector]


class EndpointEmbedder(Embedder):
    """Asks `POST <url>/embeddings`, `batch` texts at a time; a request may take `timeout_s`, and is
    repeated up to `retries` times where the server is busy or away. Vectors are scaled to length 1,
    and have the same dimension for ever."""

    def __init__(
        self,
        url: str,
        model: str,
        api_key: str | None,
        *,
        batch: int,
        timeout_s: float,
        retries: int,
    ) -> None:
        self._url = f"{url.rstrip('/')}/embeddings"
        self._model, self._batch, self._retries = model, batch, retries
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._http = httpx2.AsyncClient(timeout=timeout_s, headers=headers)
        self._timeout_s = timeout_s
        self._dimension: int | None = None

    @override
    async def model(self) -> str:
        return self._model

    @override
    async def embed(self, texts: Sequence[str]) -> Embedded:
        vectors: list[list[float]] = []
        for start in range(0, len(texts), self._batch):
            vectors += (await self._ask(texts[start : start + self._batch])).tolist()
        return Embedded(self._model, vectors)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _ask(self, texts: Sequence[str]) -> NDArray[np.float32]:
        problem = ""
        for attempt in range(self._retries + 1):
            if attempt:
                await asyncio.sleep(_FIRST_WAIT_S * 2.0 ** (attempt - 1))
            try:
                async with asyncio.timeout(self._timeout_s):
                    return self._vectors(await self._post(texts), len(texts))
            except (TimeoutError, httpx2.TransportError) as error:
                problem = str(error) or f"no answer within {self._timeout_s:g} s"
            except httpx2.HTTPStatusError as error:
                problem = f"HTTP {error.response.status_code}"
                if error.response.status_code not in _AGAIN:
                    break
            except ValueError as error:
                problem = str(error)
                break
        raise EmbedderUnavailable(f"{self._url}, model {self._model}: {problem}")

    async def _post(self, texts: Sequence[str]) -> bytes:
        # An empty text is refused.
        asked = {"model": self._model, "input": [text or " " for text in texts]}
        text = bytearray()
        async with self._http.stream("POST", self._url, json=asked) as reply:
            reply.raise_for_status()
            async for part in reply.aiter_bytes():
                text += part
                if len(text) > _MAX_REPLY:
                    raise ValueError(f"the reply has more than {_MAX_REPLY} bytes")
        return bytes(text)

    def _vectors(self, reply: bytes, count: int) -> NDArray[np.float32]:
        """Parse vectors in the order of their texts. Raises ValueError."""
        try:
            found = sorted(_Reply.model_validate_json(reply).data, key=lambda each: each.index)
        except ValidationError as error:
            raise ValueError("the reply is no list of embeddings") from error
        if [each.index for each in found] != list(range(count)):
            raise ValueError(f"the reply has {len(found)} embeddings of {count} texts")
        dimension = self._dimension or len(found[0].embedding)
        if any(len(each.embedding) != dimension for each in found):
            raise ValueError(f"the embeddings do not all have {dimension} numbers")
        vectors = np.array([each.embedding for each in found], dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise ValueError("an embedding is not finite, or zero")
        self._dimension = dimension
        return vectors / lengths
