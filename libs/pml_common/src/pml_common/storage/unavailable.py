"""Queries while Postgres is away: the client is told; deliveries wait (`StorageUnavailable`)."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pml_common.storage.errors import StorageUnavailable

A = TypeVar("A")
R = TypeVar("R")


def map_unavailable(
    handler: Callable[[A], Awaitable[R]], error: Callable[[str], Exception]
) -> Callable[[A], Awaitable[R]]:
    """A handler that raises `error(reason)` where Postgres does not answer."""

    async def mapped(question: A) -> R:
        try:
            return await handler(question)
        except StorageUnavailable as outage:
            raise error(str(outage)) from outage

    return mapped
