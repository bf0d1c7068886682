"""Relations that follow from tools and intents."""

import asyncio

import pytest

from pml_common.contracts.dependencies import GraphChanged
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import ELSEWHERE, SCOPE, analysed
from services.registry.tests.support.dependencies import GraphDriver, code
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration

INTENT = "fetch the weather of tomorrow"


@pytest.fixture
def graph(stores: Stores, embedder: Embedder) -> GraphDriver:
    """Drives the handlers."""
    return GraphDriver(stores, embedder)


async def test_half_of_anothers_tools_make_a_sequence(graph: GraphDriver) -> None:
    await graph.has("a:four", "a", tools=["fs:a", "fs:b", "fs:c", "fs:d"])
    await graph.has("a:two", "b", tools=["fs:a", "fs:x"])
    await graph.has("a:none", "c", tools=["fs:y"])
    new = await graph.has("a:new", "d", tools=["fs:a", "fs:z"])
    await graph.listed(new)
    (found,) = (await graph.page("a:new")).dependencies
    assert (found.to_name, found.edge_type, found.edge_source) == ("a:two", "sequence", "inferred")
    assert (found.observed_count, found.confidence_score) == (0, 0.5)


async def test_the_share_of_tools_is_the_confidence(graph: GraphDriver) -> None:
    await graph.has("a:old", "a", tools=["fs:a", "fs:b", "fs:c"])
    await graph.listed(await graph.has("a:new", "b", tools=["fs:a", "fs:b", "fs:d"]))
    (found,) = (await graph.page("a:new", "out")).dependencies
    assert found.confidence_score == pytest.approx(2 / 3)


async def test_the_same_intent_with_other_tools_makes_an_alternative(graph: GraphDriver) -> None:
    await graph.has("web:rest", "a", tools=["http:get"], intent=INTENT)
    await graph.has("web:unlike", "b", tools=["sql:run"], intent="count the rows of a table")
    await graph.listed(await graph.has("web:graphql", "c", tools=["graphql:query"], intent=INTENT))
    assert await graph.edges("web:graphql") == [("web:graphql>web:rest", "alternative", "inferred")]


async def test_the_same_intent_with_the_same_tools_is_no_alternative(graph: GraphDriver) -> None:
    await graph.has("web:one", "a", tools=["http:get"], intent=INTENT)
    await graph.listed(await graph.has("web:two", "b", tools=["http:get"], intent=INTENT))
    assert await graph.edges("web:two") == [("web:two>web:one", "sequence", "inferred")]


async def test_a_redelivery_relates_no_two_again(graph: GraphDriver) -> None:
    one = await graph.has("web:rest", "a", tools=["http:get"], intent=INTENT)
    other = await graph.has("web:graphql", "b", tools=["graphql:query"], intent=INTENT)
    said = await graph.listed(other, other)
    assert [type(message) for message in said] == [GraphChanged]
    for _ in range(2):
        assert await graph.listed(other, one) == []
    assert await graph.edges("web:rest") == [("web:graphql>web:rest", "alternative", "inferred")]


async def test_capabilities_listed_at_once_are_related(graph: GraphDriver) -> None:
    records = [await graph.has(f"a:c{n}", letter) for n, letter in enumerate("abcd")]
    await asyncio.gather(*(graph.listed(record) for record in records))
    for record in records:
        related = {
            each.to_name if each.from_name == record.name else each.from_name
            for each in (await graph.page(record.name)).dependencies
        }
        assert related == {other.name for other in records} - {record.name}


async def test_what_is_not_listed_or_of_another_scope_is_not_related(graph: GraphDriver) -> None:
    await graph.registry.analysed(analysed(code("a")))
    await graph.has("a:theirs", "b", scope=ELSEWHERE)
    new = await graph.has("a:new", "c")
    assert await graph.listed(new) == []
    unlisted = await graph.registry.resolve("unnamed_aaaa", SCOPE)
    assert await graph.listed(unlisted) == []
    unknown = new.model_copy(update={"capability_id": new.record_id})
    assert await graph.listed(unknown) == []


async def test_a_former_version_is_not_related(graph: GraphDriver) -> None:
    await graph.has("a:old", "a")
    second = analysed(code("b"), tools=["x:y"])
    await graph.registry.reserve("a:old", second, update=True)
    assert await graph.registry.settle(second)
    assert await graph.listed(await graph.has("a:new", "c")) == []


async def test_new_statistics_relate_nothing(graph: GraphDriver) -> None:
    await graph.has("a:old", "a")
    new = await graph.has("a:new", "b")
    assert await graph.changed("learned", new) == []
    assert await graph.edges("a:new") == []
