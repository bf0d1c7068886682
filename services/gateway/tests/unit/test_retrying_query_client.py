"""Queries to services that come back, and to those that do not."""

import asyncio
from typing import TypeVar

import pytest
from typing_extensions import override

from pml_common.bus.errors import NoResponder, QueryFailed
from pml_common.contracts import catalog
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.retrying_query_client import RetryingQueryClient
from services.gateway.tests.support.builders import SCOPE

QUESTION = ListTools(scope=SCOPE)
Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)


class Counting(MemoryBus):
    """Counts the tries of its clients."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    @override
    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        self.tries += 1
        return await super().request(query_type, query, timeout=timeout)


async def test_a_question_waits_for_an_owner_that_is_away() -> None:
    bus = MemoryBus()
    asked = asyncio.create_task(
        RetryingQueryClient(bus, 20.0).request(catalog.LIST_TOOLS, QUESTION)
    )
    await asyncio.sleep(0)
    assert not asked.done()

    async def answer(_: ListTools) -> ToolCatalog:
        return ToolCatalog(tools=())

    await bus.serve(catalog.LIST_TOOLS, answer)
    assert await asked == ToolCatalog(tools=())


async def test_an_owner_that_stays_away_is_waited_for_so_long() -> None:
    bus = Counting()
    with pytest.raises(NoResponder, match="registry list-tools: no replica is running"):
        await RetryingQueryClient(bus, 0.2).request(catalog.LIST_TOOLS, QUESTION)
    assert bus.tries > 1


async def test_what_an_owner_answers_is_not_asked_again() -> None:
    bus, asked = MemoryBus(), list[ListTools]()

    async def refuse(question: ListTools) -> ToolCatalog:
        asked.append(question)
        raise QueryFailed("unavailable", "the index is being built")

    await bus.serve(catalog.LIST_TOOLS, refuse)
    with pytest.raises(QueryFailed, match="being built"):
        await RetryingQueryClient(bus, 20.0).request(catalog.LIST_TOOLS, QUESTION)
    assert asked == [QUESTION]
