"""Embedders by the name of their model: the local one, and those of an endpoint."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from pml_registry.adapters.background_embedder import BackgroundEmbedder, Model
from pml_registry.adapters.endpoint_embedder import EndpointEmbedder
from pml_registry.adapters.guarded import Guard, GuardedEmbedder
from pml_registry.ports.vectors import Embedder, EmbedderUnavailable, EmbeddingModel


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible endpoint; see `EndpointEmbedder`. `wait_s` bounds what a search waits
    for it."""

    url: str
    api_key: str | None
    batch: int
    timeout_s: float
    retries: int
    wait_s: float


class Embedders:
    """Each is made when it is first asked for."""

    def __init__(
        self, local: EmbeddingModel, load: Callable[[], Model], endpoint: Endpoint | None = None
    ) -> None:
        self._local, self._load, self._endpoint = local, load, endpoint
        self._loaded: BackgroundEmbedder | None = None
        self._asked: dict[str, EndpointEmbedder] = {}
        self._guarded: dict[str, tuple[Guard, GuardedEmbedder]] = {}

    def patient(self, model: str) -> Embedder:
        """Return the embedder of a model, for work that nobody waits for. Raises
        EmbedderUnavailable."""
        if model == self._local.name:
            self._loaded = self._loaded or BackgroundEmbedder(model, self._load)
            return self._loaded
        if self._endpoint is None:
            raise EmbedderUnavailable(
                f"the embedding model {model} needs an endpoint: set PML_REGISTRY_EMBEDDING_URL"
            )
        if model not in self._asked:
            at = self._endpoint
            self._asked[model] = EndpointEmbedder(
                at.url,
                model,
                at.api_key,
                batch=at.batch,
                timeout_s=at.timeout_s,
                retries=at.retries,
            )
        return self._asked[model]

    def prompt(self, model: str) -> Embedder:
        """Return the embedder of a model with a bounded wait. Raises EmbedderUnavailable."""
        embedder = self.patient(model)
        if self._endpoint is None or model == self._local.name:
            return embedder
        if model not in self._guarded:
            guard = Guard("the embedding endpoint", self._endpoint.wait_s, EmbedderUnavailable)
            self._guarded[model] = guard, GuardedEmbedder(embedder, guard)
        return self._guarded[model][1]

    async def described(self, model: str) -> EmbeddingModel:
        """Return a model with its dimension, for which an endpoint is asked. Raises
        EmbedderUnavailable."""
        if model == self._local.name:
            return self._local
        embedded = await self.patient(model).embed(["dimension"])
        return EmbeddingModel(model, len(embedded.vectors[0]))

    async def check(self) -> str | None:
        """Check health: the problem of the local model, or of an endpoint that does not answer."""
        if self._loaded is not None and (problem := await self._loaded.check()):
            return problem
        for guard, _ in self._guarded.values():
            if problem := await guard.check():
                return problem
        return None

    async def aclose(self) -> None:
        """Cancel loading, and close connections."""
        open_ = [*self._asked.values(), *([self._loaded] if self._loaded else [])]
        await asyncio.gather(*(each.aclose() for each in open_))
