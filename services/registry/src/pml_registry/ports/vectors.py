"""Ports of embeddings and of search by meaning."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol, Self

from pml_common.contracts.scope import Scope
from pml_common.contracts.search_index import ReindexState
from pml_common.errors import Retryable
from pml_registry.domain.ranking import Kind

Vector = Sequence[float]
"""A unit vector of the model's dimension."""


class EmbedderUnavailable(Retryable):
    """No vector can be computed at present."""


class IndexUnavailable(Retryable):
    """The vector index does not answer, or does not hold all vectors, at present."""


@dataclass(frozen=True)
class Embedded:
    """Vectors of texts, in order, and the model that computed them; no vectors: embedded later."""

    model: str
    vectors: Sequence[Vector]

    @classmethod
    def later(cls) -> Self:
        """Build what a store gets while there is no embedder."""
        return cls("", ())


class Embedder(Protocol):
    """Maps texts to vectors; similar meanings have a high cosine."""

    async def model(self) -> str:
        """Return the model's name. Raises EmbedderUnavailable."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Return a unit vector per text. Raises EmbedderUnavailable."""
        ...


@dataclass(frozen=True)
class EmbeddingModel:
    """A model by its name, and the length of its vectors."""

    name: str
    dimension: int


ModelState = Literal["serving", "preparing", "retired"]


@dataclass(frozen=True)
class StoredModel:
    """A model that has vectors, since when it is in its state, and whether the external index has
    had all of them."""

    model: EmbeddingModel
    state: ModelState
    indexed: bool
    for_s: float = 0.0


@dataclass(frozen=True, order=True)
class PointKey:
    """A tool or a behaviour, by its id in its scope; in the order of a store's keys."""

    org: str
    project: str
    kind: Kind
    id: str

    @property
    def scope(self) -> Scope:
        """Its scope."""
        return Scope(org=self.org, project=self.project)


@dataclass(frozen=True)
class Point:
    """A vector and what it is of."""

    key: PointKey
    vector: Vector = field(repr=False)


@dataclass(frozen=True)
class Near:
    """A result by meaning."""

    id: str
    cosine: float


class VectorSearch(Protocol):
    """Search by meaning. Raises IndexUnavailable (an index in Postgres: StorageUnavailable)."""

    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[Near]:
        """Return the nearest of a scope by cosine, the nearest first, among vectors of a prepared
        model."""
        ...


class VectorIndex(VectorSearch, Protocol):
    """Search by meaning among the vectors of each model. Derived: it may lag behind the stores and
    return removed ids. Every operation has a bounded wait, may be repeated, and raises
    IndexUnavailable (an index in Postgres: StorageUnavailable)."""

    async def prepare(self, model: EmbeddingModel) -> bool:
        """Create what holds the vectors of a model; return False if it is there already."""
        ...

    async def upsert(self, model: str, points: Sequence[Point]) -> None:
        """Store vectors of a prepared model; the last one of a key stays."""
        ...

    async def delete(self, model: str, keys: Sequence[PointKey]) -> None:
        """Remove vectors, those that are there."""
        ...

    async def count(self, model: str) -> int:
        """Return the number of vectors of a prepared model, in all scopes."""
        ...

    async def keys(
        self, model: str, after: str | None, limit: int
    ) -> tuple[Sequence[PointKey], str | None]:
        """Return the keys of a prepared model's vectors in an order of its own after a position,
        None at the start, and the position after them, None at the end."""
        ...

    async def drop(self, model: str) -> None:
        """Remove all vectors of a model, and what holds them, if it is there."""
        ...


@dataclass(frozen=True)
class Unembedded:
    """A tool or behaviour without a vector of a model: the text to embed, and a value by which a
    store tells whether that text is still the present one."""

    key: PointKey
    text: str
    revision: str


class EmbeddingModels(Protocol):
    """The deployment's embedding models, and the vectors that are still to be computed."""

    def turn(self) -> AbstractAsyncContextManager[bool]:
        """Take the turn to compute some of them until the context exits; False while another
        process has it."""
        ...

    async def all(self) -> Sequence[StoredModel]:
        """Return every model that has vectors."""
        ...

    async def begin(self, model: EmbeddingModel) -> None:
        """Make a model the one that is prepared, instead of another, unless it serves; without a
        serving model it serves at once. Raises ValueError if it is known with another dimension."""
        ...

    async def unembedded(
        self, model: str, after: PointKey | None, limit: int
    ) -> Sequence[Unembedded]:
        """Return what has no vector of the model, after one, in an order of the store's own."""
        ...

    async def fill(
        self, model: str, missing: Sequence[Unembedded], vectors: Sequence[Vector]
    ) -> None:
        """Store vectors of those whose text is still the same and that have none yet."""
        ...

    async def serve(self, model: str, *, needs_index: bool) -> bool:
        """Let a prepared model serve and retire the one that does, in one transaction; with
        `needs_index` only once the external index has had all its vectors. Return whether it
        serves now."""
        ...

    async def forget(self, model: str) -> bool:
        """Remove a retired model and its vectors; return whether it is removed now."""
        ...


@dataclass(frozen=True)
class Change:
    """A noted change of a vector, and the vector as it is now: None if there is none to be
    found."""

    sequence: int
    model: str
    key: PointKey
    vector: Vector | None = field(repr=False)


@dataclass(frozen=True)
class ReindexRun:
    """A rebuild of the external index and its place in it: by model, first every vector of the
    store after `stored_to`, then, once it is `checking`, every key of the index after
    `checked_to`."""

    progress: ReindexState
    model: str | None = None
    stored_to: PointKey | None = None
    checking: bool = False
    checked_to: str | None = None


class IndexTurn(Protocol):
    """A transaction in which one process alone brings the external index up to date: it reads what
    is stored now, and nobody writes an older state after it."""

    async def changes(self, limit: int) -> Sequence[Change]:
        """Return the oldest noted changes, each key of a model once."""
        ...

    async def forget(self, changes: Sequence[Change]) -> None:
        """Remove changes that the index has had, with earlier ones of the same keys."""
        ...

    async def models(self) -> Sequence[StoredModel]:
        """Return the models that are not retired, the serving one first."""
        ...

    async def set_indexed(self, model: str, *, indexed: bool) -> None:
        """Store whether the index has had all vectors of a model."""
        ...

    async def points(self, model: str, after: PointKey | None, limit: int) -> Sequence[Point]:
        """Return the vectors that are to be found, in the order of keys after one."""
        ...

    async def unknown(self, model: str, keys: Sequence[PointKey]) -> Sequence[PointKey]:
        """Return those that have no vector of the model that is to be found."""
        ...

    async def count(self, model: str) -> int:
        """Return the number of vectors of the model that are to be found."""
        ...

    async def run(self) -> ReindexRun | None:
        """Return the rebuild that is under way."""
        ...

    async def begin(self, requested_by: str) -> ReindexRun:
        """Return the rebuild that is under way, else a new one."""
        ...

    async def save(self, run: ReindexRun) -> None:
        """Store its state."""
        ...


class IndexWork(Protocol):
    """Changes that an external index has to be told, and its rebuild."""

    async def follow(self) -> None:
        """Note changes from now on; begin a rebuild if none were noted before. Repeated from time
        to time while the index is in use."""
        ...

    async def abandon(self, unused_for_s: float) -> None:
        """Note no more changes, and forget those noted, if the index is not in use for so long."""
        ...

    def turn(self) -> AbstractAsyncContextManager[IndexTurn | None]:
        """Take the turn until the context exits; None while another process has it. An error in
        the block rolls back."""
        ...

    async def pending(self) -> int:
        """Return the number of noted changes, at most a thousand."""
        ...

    async def request_run(self, requested_by: str) -> ReindexState:
        """Begin a rebuild, unless one is under way; return its state."""
        ...

    async def last_run(self) -> ReindexState | None:
        """Return the state of the last rebuild."""
        ...
