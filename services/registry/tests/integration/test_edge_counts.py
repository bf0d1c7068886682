"""Edges that runs show, counted, bounded and fading."""

import asyncio
import random
from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.pml_local.tests.support.databases import SharedDatabase
from pml_common.bus.errors import Retryable
from pml_common.contracts import ids
from pml_common.contracts.dependencies import Dependency, GraphEdge
from pml_common.contracts.learner import EdgesObserved, ObservedRelation
from pml_common.storage.scoped import ScopedPools
from pml_registry.application.fading import Fading
from pml_registry.domain.edge_counts import HALF_LIFE, MOST_AN_HOUR
from pml_registry.entrypoints.bus.on_edges_observed import on_edges_observed
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import ELSEWHERE, NOON, SCOPE, edges, listed, tool
from services.registry.tests.support.dependencies import GraphDriver, calls, code
from services.registry.tests.support.stores import Edges, Stores, stores_on

pytestmark = pytest.mark.integration

PAIR = ("fs:stat", "fs:read")
BACK = ("fs:read", "fs:stat")
KEY = (*PAIR, "sequence")
A, B = (str(ids.capability_id(SCOPE, code(letter))) for letter in "ab")


@pytest.fixture
def graph(stores: Stores, embedder: Embedder) -> GraphDriver:
    """Drives the handlers."""
    return GraphDriver(stores, embedder)


async def _fade(graph: GraphDriver, later: timedelta) -> None:
    """Let time pass, and look at the edges, twice."""
    graph.now += later
    for _ in range(2):
        await Fading(graph.stores.shown, lambda: graph.now).look()


async def _one(graph: GraphDriver) -> Dependency:
    (found,) = (await graph.page("ci:deploy")).dependencies
    return found


def _related(*relations: tuple[str, str, str], runs: int = 1) -> EdgesObserved:
    """Build the event of runs that show relations with a capability at an end."""
    found = [
        ObservedRelation.model_validate({"from": one, "to": other, "type": type_, "count": runs})
        for one, other, type_ in relations
    ]
    return edges(runs=runs).model_copy(update={"relations": tuple(found)})


async def test_an_edge_shown_by_three_runs_is_observed(graph: GraphDriver) -> None:
    for count, source in ((1, "inferred"), (2, "inferred"), (3, "observed"), (4, "observed")):
        await graph.observe(edges(PAIR))
        assert await graph.stores.edges(SCOPE) == {KEY: (count, source)}


async def test_edges_delivered_twice_count_once(graph: GraphDriver) -> None:
    message = edges(PAIR, BACK)
    for _ in range(2):
        handled = await graph.observe(message)
        (changed,) = handled.facts[message.event_id]
        assert changed.message_id == ids.effect_id(message.event_id, "graph-changed")
    assert await graph.stores.edges(SCOPE) == {
        KEY: (1, "inferred"),
        (*BACK, "sequence"): (1, "inferred"),
    }
    assert await graph.stores.edges(ELSEWHERE) == {}


async def test_edges_of_many_runs_at_once_are_all_counted(graph: GraphDriver) -> None:
    pairs = [("a:x", "b:y"), ("b:y", "c:z")]
    messages = [
        edges(*(pairs if number % 2 else pairs[::-1]), cohort=number % 4) for number in range(20)
    ]
    await asyncio.gather(*(graph.observe(message) for message in messages))
    assert set((await graph.stores.edges(SCOPE)).values()) == {(20, "observed")}


async def test_edges_of_batches_that_share_messages_are_counted_once(graph: GraphDriver) -> None:
    messages = [edges(("a:x", "b:y"), ("b:y", "c:z"), cohort=number % 4) for number in range(20)]
    elsewhere = edges(("a:x", "b:y"), scope=ELSEWHERE)
    await asyncio.gather(
        graph.observe(*messages[:15], elsewhere), graph.observe(elsewhere, *messages[:4:-1])
    )
    assert set((await graph.stores.edges(SCOPE)).values()) == {(20, "observed")}
    assert set((await graph.stores.edges(ELSEWHERE)).values()) == {(1, "inferred")}


async def test_what_one_cohort_adds_in_an_hour_is_bounded(graph: GraphDriver) -> None:
    await graph.pair()
    await asyncio.gather(
        *(graph.observe(edges(PAIR, runs=50, cohort=3)) for _ in range(3)),
        *(graph.observe(calls(("a", "b"), runs=50, cohort=3)) for _ in range(3)),
    )
    assert (await graph.stores.edges(SCOPE))[KEY] == (MOST_AN_HOUR, "observed")
    assert (await _one(graph)).observed_count == MOST_AN_HOUR
    await graph.observe(calls(("a", "b"), runs=2, cohort=4))
    assert (await _one(graph)).observed_count == MOST_AN_HOUR + 2


async def test_a_capabilitys_tools_and_steps_are_edges_of_the_graph(graph: GraphDriver) -> None:
    await graph.pair()
    steps = [(A, "ci:push", "contains"), ("ci:push", B, "sequence"), (B, A, "sequence")]
    message = _related(*steps)
    for _ in range(2):
        await graph.observe(message)
    assert await graph.stores.edges(SCOPE) == {
        (A, "ci:push", "contains"): (1, "inferred"),
        ("ci:push", B, "sequence"): (1, "inferred"),
    }
    assert await graph.edges("ci:deploy") == [("ci:build>ci:deploy", "sequence", "inferred")]
    await graph.observe(_related(*steps, runs=2))
    assert set((await graph.stores.edges(SCOPE)).values()) == {(3, "observed")}
    assert await graph.edges("ci:deploy") == [("ci:build>ci:deploy", "sequence", "observed")]


async def test_relations_of_a_capability_that_does_not_exist_yet_are_counted_later(
    graph: GraphDriver,
) -> None:
    message = _related((A, "ci:push", "contains"))
    handled = await graph.observe(message)
    assert {type(error) for error in handled.failed.values()} == {Retryable}
    await graph.pair()
    assert (await graph.observe(message)).failed == {}
    assert await graph.stores.edges(SCOPE) == {(A, "ci:push", "contains"): (1, "inferred")}
    await graph.observe(_related((A, A, "sequence"), (A, "ci:push", "sequence")))
    assert set(await graph.stores.edges(SCOPE)) == {
        (A, "ci:push", "contains"),
        (A, "ci:push", "sequence"),
    }


async def test_what_no_run_shows_any_longer_sinks_back_and_is_forgotten(
    graph: GraphDriver,
) -> None:
    await graph.pair()
    shown = [
        edges(PAIR, runs=3),
        calls(("a", "b"), runs=3),
        _related((A, "ci:push", "contains"), runs=3),
    ]
    await graph.observe(*shown)
    await _fade(graph, HALF_LIFE * 0.9)
    assert set((await graph.stores.edges(SCOPE)).values()) == {(3, "observed")}
    faded = await _one(graph)
    assert (faded.edge_source, faded.confidence_score) == ("observed", pytest.approx(0.6165, 1e-3))
    await _fade(graph, HALF_LIFE * 0.2)
    assert set((await graph.stores.edges(SCOPE)).values()) == {(3, "inferred")}
    assert (await _one(graph)).edge_source == "inferred"
    await _fade(graph, HALF_LIFE * 5)
    assert await graph.stores.edges(SCOPE) == {}
    assert await graph.edges("ci:deploy") == []
    await graph.observe(*shown)  # redelivered: counted before
    assert await graph.stores.edges(SCOPE) == {}


async def test_an_edge_that_was_looked_at_is_left_for_a_day(graph: GraphDriver) -> None:
    for _ in range(2):
        await graph.observe(edges(PAIR), edges(BACK))
    at = graph.now + timedelta(days=2)
    store = graph.stores.shown
    assert [await store.fade(at, 1) for _ in range(3)] == [1, 1, 0]
    assert await store.fade(at + timedelta(hours=23), 9) == 0
    assert await store.fade(at + timedelta(hours=25), 9) == 2


async def test_templates_rules_and_texts_never_fade(graph: GraphDriver) -> None:
    await graph.has("ci:deploy", "a", tools=["ci:push"])
    build = await graph.has("ci:build", "b", tools=["ci:push"])
    await graph.observe(_related((B, A, "sequence"), runs=1))
    assert await graph.listed(build), "a rule says, too, what runs showed"
    await graph.add("ci:deploy", "ci:build", "dependency")
    await graph.add("ci:deploy", "ci:build", "contains")
    await graph.observe(calls(("a", "b"), runs=3))
    before = await graph.edges("ci:deploy")
    assert ("ci:deploy>ci:build", "contains", "observed") in before
    await _fade(graph, HALF_LIFE * 50)
    assert await graph.edges("ci:deploy") == [
        ("ci:build>ci:deploy", "sequence", "inferred"),
        ("ci:deploy>ci:build", "contains", "template"),
        ("ci:deploy>ci:build", "dependency", "template"),
    ]
    confidences = [each.confidence_score for each in (await graph.page("ci:deploy")).dependencies]
    assert confidences == [pytest.approx(1), pytest.approx(0.5), pytest.approx(0.5)]


async def test_what_a_person_states_stays_though_runs_showed_it_first(
    graph: GraphDriver,
) -> None:
    await graph.pair()
    await graph.observe(calls(("a", "b")))
    assert not (await graph.add("ci:deploy", "ci:build", "contains")).created
    await graph.add("ci:build", "ci:deploy", "sequence", "observed")
    await _fade(graph, HALF_LIFE * 50)
    assert await graph.edges("ci:deploy") == [
        ("ci:build>ci:deploy", "sequence", "inferred"),
        ("ci:deploy>ci:build", "contains", "inferred"),
    ]


async def test_a_template_that_runs_show_still_closes_no_cycle(graph: GraphDriver) -> None:
    await graph.pair()
    await graph.add("ci:deploy", "ci:build", "contains")
    await graph.observe(calls(("a", "b"), runs=3))
    with pytest.raises(Exception, match="cycle"):
        await graph.add("ci:build", "ci:deploy", "contains")


async def test_the_graph_weighs_what_runs_show_of_a_capabilitys_tools(
    graph: GraphDriver, embedder: Embedder
) -> None:
    await graph.pair()
    tools = [tool("ci:make"), tool("ci:push")]
    await on_tools_listed(listed(*tools, server="ci"), graph.stores.tools, embedder)
    await graph.observe(_related((A, "ci:push", "contains"), ("ci:make", A, "sequence"), runs=3))
    assert _weights((await graph.hypergraph()).edges) == {
        (A, "ci:push", "contains", "observed"): pytest.approx(0.8),
        ("ci:make", A, "sequence", "observed"): pytest.approx(0.5),
        (B, "ci:make", "contains", "inferred"): pytest.approx(0.8 * 0.7),
    }
    await _fade(graph, HALF_LIFE * 2)
    graph.graphs.drop(SCOPE)
    assert (A, "ci:push", "contains", "inferred") in _weights((await graph.hypergraph()).edges)
    await _fade(graph, HALF_LIFE * 10)
    graph.graphs.drop(SCOPE)
    assert set(_weights((await graph.hypergraph()).edges)) == {
        (A, "ci:push", "contains", "inferred"),
        (B, "ci:make", "contains", "inferred"),
    }, "as the programs say"


def _weights(found: Sequence[GraphEdge]) -> dict[tuple[str, str, str, str], float]:
    return {(each.from_, each.to, each.type, each.source): each.weight for each in found}


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 3)), max_size=8),
    st.lists(st.integers(0, 23), max_size=12),
    st.randoms(use_true_random=False),
)
async def test_messages_in_any_order_and_batches_and_again_are_counted_once(
    registry_database: SharedDatabase,
    registry_pools: ScopedPools,
    sent: list[tuple[int, int, int]],
    again: list[int],
    order: random.Random,
) -> None:
    messages = [
        edges((f"a:t{at}", "b:y"), ("b:y", "c:z"), cohort=cohort, runs=runs)
        for at, cohort, runs in sent
    ]
    batches = [[message] for message in messages]
    expected = await _counted(registry_database, registry_pools, batches)
    delivered = [*messages, *(messages[at % len(messages)] for at in again if messages)]
    order.shuffle(delivered)
    batches.clear()
    while delivered:
        size = order.randint(1, len(delivered))
        batches.append(list({each.event_id: each for each in delivered[:size]}.values()))
        delivered = delivered[size:]
    assert await _counted(registry_database, registry_pools, batches) == expected


async def _counted(
    database: SharedDatabase, pools: ScopedPools, batches: Sequence[Sequence[EdgesObserved]]
) -> Edges:
    """Handle batches in empty stores, and return the edges."""
    await database.empty()
    stores = stores_on(pools)
    for batch in batches:
        await on_edges_observed(batch, stores.shown, stores.dependencies, lambda: NOON)
    return await stores.edges(SCOPE)
