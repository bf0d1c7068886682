"""Queries to services that come back, and to those that do not."""

import asyncio

import pytest

from pml_common.bus.errors import NoResponder, QueryFailed
from pml_common.bus.memory import MemoryBus
from pml_common.contracts import catalog
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_gateway.adapters.bus.retrying_query_client import RetryingQueryClient
from services.gateway.tests.support.builders import SCOPE

QUESTION = ListTools(scope=SCOPE)


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
    clock = asyncio.get_running_loop().time
    began = clock()
    with pytest.raises(NoResponder, match="registry list-tools: no replica is running"):
        await RetryingQueryClient(MemoryBus(), 0.2).request(catalog.LIST_TOOLS, QUESTION)
    assert 0.05 < clock() - began < 10.0


async def test_what_an_owner_answers_is_not_asked_again() -> None:
    bus, asked = MemoryBus(), list[ListTools]()

    async def refuse(question: ListTools) -> ToolCatalog:
        asked.append(question)
        raise QueryFailed("unavailable", "the index is being built")

    await bus.serve(catalog.LIST_TOOLS, refuse)
    with pytest.raises(QueryFailed, match="being built"):
        await RetryingQueryClient(bus, 20.0).request(catalog.LIST_TOOLS, QUESTION)
    assert asked == [QUESTION]
