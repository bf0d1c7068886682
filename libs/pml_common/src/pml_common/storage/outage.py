"""Living through the absence of Postgres."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pml_common.storage.errors import StorageUnavailable

A = TypeVar("A")
R = TypeVar("R")

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0


def outlasting(
    handler: Callable[[A], Awaitable[R]], patience_s: float = 60.0
) -> Callable[[A], Awaitable[R]]:
    """A handler that tries again while Postgres is away, `patience_s` at most.

    The bus keeps a delivery in hand alive, so an outage uses up none of its redeliveries.
    Raises StorageUnavailable.
    """

    async def patient(message: A) -> R:
        deadline = asyncio.get_running_loop().time() + patience_s
        pause = _FIRST_PAUSE_S
        while True:
            try:
                return await handler(message)
            except StorageUnavailable:
                if asyncio.get_running_loop().time() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    return patient


def reporting(
    handler: Callable[[A], Awaitable[R]], error: Callable[[str], Exception]
) -> Callable[[A], Awaitable[R]]:
    """A handler that raises `error(reason)` where Postgres does not answer."""

    async def candid(question: A) -> R:
        try:
            return await handler(question)
        except StorageUnavailable as outage:
            raise error(str(outage)) from outage

    return candid
