"""Contracts of the vector index: its state, and its rebuild."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from pml_common.contracts.base import Contract, Query


class ReindexState(Contract):
    """A rebuild of the vector index: of `total` vectors it has `stored` so many, and it has removed
    those of the index that Postgres does not have. `problem`: why it does not go on at present."""

    run_id: UUID
    state: Literal["running", "done"]
    requested_by: str
    total: int = Field(default=0, ge=0)
    stored: int = Field(default=0, ge=0)
    removed: int = Field(default=0, ge=0)
    problem: str | None = None
    began_at: datetime
    changed_at: datetime


class IndexedModel(Contract):
    """An embedding model that has vectors. `complete`: whether the index has all of them."""

    name: str
    dimension: int = Field(gt=0)
    state: Literal["serving", "preparing", "retired"]
    complete: bool


class ShowIndex(Query):
    """Show the vector index of the deployment."""


class Reindex(Query):
    """Rebuild the vector index from Postgres. Idempotent: while a rebuild is under way, it goes
    on."""

    principal: str


class IndexState(Contract):
    """The vector index: where vectors are searched, changes that it has not had (counted up to a
    thousand), the embedding models, and the last rebuild."""

    index: Literal["postgres", "qdrant"]
    pending: int = Field(default=0, ge=0)
    models: tuple[IndexedModel, ...] = ()
    reindex: ReindexState | None = None
