"""Dependencies between capabilities.

The tests are named after the acceptance criteria that they check; docs/graph.md lists them.
"""

import asyncio
import logging
from functools import partial

import asyncpg
import pytest

from pml_common.bus.errors import QueryFailed, Retryable
from pml_common.contracts import ids
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.dependencies import GraphChanged
from pml_common.contracts.registry import (
    CapabilityHit,
    Discover,
    DiscoveryPage,
    ListCapabilities,
    ResolveCapability,
)
from pml_common.contracts.scope import Scope
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_list_capabilities import on_list_capabilities
from pml_registry.entrypoints.bus.with_dependencies import (
    discover_related,
    list_counted,
    resolve_counted,
)
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import ELSEWHERE, SCOPE, analysed
from services.registry.tests.support.dependencies import GraphDriver, calling, calls, code
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration


@pytest.fixture
def graph(stores: Stores, embedder: Embedder) -> GraphDriver:
    """Drives the handlers."""
    return GraphDriver(stores, embedder)


async def test_ac01_a_dependency_is_of_existing_behaviours_and_goes_with_them(
    graph: GraphDriver,
) -> None:
    deploy, build = await graph.pair()
    await graph.add("ci:deploy", "ci:build")
    async with graph.stores.pools.across() as session:
        insert = """
            INSERT INTO capability_dependency (
                org, project, from_capability_id, to_capability_id, edge_type, edge_source,
                observed_count, confidence_score
            )
            VALUES ('acme', 'webapp', $1, $2, 'contains', 'template', 0, 0.5)
        """
        unknown = ids.capability_id(ELSEWHERE, code("b"))
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await session.execute(insert, deploy.capability_id, unknown)
        with pytest.raises(asyncpg.CheckViolationError):
            await session.execute(insert, deploy.capability_id, deploy.capability_id)
        await session.execute(
            "DELETE FROM workflow_pattern WHERE pattern_id = $1", build.capability_id
        )
        assert await session.fetchval("SELECT count(*) FROM capability_dependency") == 0


async def test_ac02_a_dependency_has_the_type_and_source_that_were_given(
    graph: GraphDriver,
) -> None:
    deploy, build = await graph.pair()
    added = await graph.add("ci:deploy", "ci:build", "sequence", "inferred")
    dependency = added.dependency
    assert added.created
    assert (dependency.edge_type, dependency.edge_source) == ("sequence", "inferred")
    assert (dependency.from_capability_id, dependency.to_capability_id) == (
        deploy.capability_id,
        build.capability_id,
    )
    template = (await graph.add("ci:deploy", "ci:build", "contains")).dependency
    assert (template.edge_source, template.observed_count) == ("template", 0)
    assert template.confidence_score == 0.5
    observed = (await graph.add("ci:build", "ci:deploy", "sequence", "observed")).dependency
    assert (observed.observed_count, observed.confidence_score) == (3, 0.75)


async def test_ac02_adding_a_dependency_again_changes_nothing(graph: GraphDriver) -> None:
    await graph.pair()
    first = await graph.add("ci:deploy", "ci:build", "contains")
    again = await graph.add("ci:deploy", "ci:build", "contains", "observed")
    assert (again.created, again.dependency) == (False, first.dependency)
    assert await graph.edges("ci:deploy") == [("ci:deploy>ci:build", "contains", "template")]


async def test_ac03_three_runs_that_show_a_call_make_it_observed(graph: GraphDriver) -> None:
    await graph.pair()
    for count, source in ((1, "inferred"), (2, "inferred"), (3, "observed"), (4, "observed")):
        await graph.observe(calls(("a", "b")))
        (found,) = (await graph.page("ci:deploy")).dependencies
        assert (found.edge_type, found.observed_count, found.edge_source) == (
            "contains",
            count,
            source,
        )
        assert found.confidence_score == pytest.approx(count / (count + 1))


async def test_ac03_a_template_that_three_runs_show_is_observed(graph: GraphDriver) -> None:
    await graph.pair()
    await graph.add("ci:deploy", "ci:build", "contains")
    for source in ("template", "template", "observed"):
        await graph.observe(calls(("a", "b")))
        assert await graph.edges("ci:deploy") == [("ci:deploy>ci:build", "contains", source)]


async def test_ac03_calls_of_a_message_are_counted_once_however_often_it_is_delivered(
    graph: GraphDriver,
) -> None:
    await graph.pair()
    message, other = calls(("a", "b"), runs=2), calls(("b", "a"))
    for batch in ([message], [message], [message, other], [other]):
        handled = await graph.observe(*batch)
        assert not handled.failed
        last = batch[-1]
        assert [each.message_id for each in handled.facts[last.event_id]] == [
            ids.effect_id(last.event_id, "graph-changed")
        ]
    await asyncio.gather(*(graph.observe(message, other) for _ in range(3)))
    found = (await graph.page("ci:deploy")).dependencies
    assert {each.from_name: each.observed_count for each in found} == {
        "ci:deploy": 2,
        "ci:build": 1,
    }


async def test_calls_of_capabilities_that_do_not_exist_yet_are_counted_later(
    graph: GraphDriver,
) -> None:
    await graph.has("ci:deploy", "a")
    early, other = calls(("a", "b")), calls(("a", "c"))
    handled = await graph.observe(early, other)
    assert {type(error) for error in handled.failed.values()} == {Retryable}
    assert set(handled.failed) == {early.event_id, other.event_id}
    assert await graph.edges("ci:deploy") == []
    await graph.has("ci:build", "b")
    handled = await graph.observe(early, other)
    assert set(handled.failed) == {other.event_id}
    assert await graph.edges("ci:deploy") == [("ci:deploy>ci:build", "contains", "inferred")]


async def test_a_call_in_a_program_is_a_dependency_before_any_run(graph: GraphDriver) -> None:
    await graph.has("ci:build", "b")
    program = calling(analysed(code("a")), {"b": "ci:build", "a": "itself", "c": "unknown"})
    for _ in range(2):
        await graph.registry.analysed(program)
    await graph.registry.named("ci:deploy", program)
    (found,) = (await graph.page("ci:deploy", "out")).dependencies
    assert (found.to_name, found.edge_type, found.edge_source) == (
        "ci:build",
        "contains",
        "inferred",
    )
    assert (found.observed_count, found.confidence_score) == (0, 0.5)


async def test_ac04_dependencies_are_read_in_both_directions(graph: GraphDriver) -> None:
    await graph.pair()
    await graph.has("ci:test", "c")
    await graph.add("ci:deploy", "ci:build")
    await graph.add("ci:test", "ci:deploy", "sequence")
    out, into = ("ci:deploy>ci:build", "dependency"), ("ci:test>ci:deploy", "sequence")
    assert [each[:2] for each in await graph.edges("ci:deploy", "out")] == [out]
    assert [each[:2] for each in await graph.edges("ci:deploy", "in")] == [into]
    assert [each[:2] for each in await graph.edges("ci:deploy")] == [out, into]
    assert await graph.edges("ci:build", "out") == []


async def test_dependencies_are_read_in_pages_the_most_confident_first(
    graph: GraphDriver,
) -> None:
    await graph.pair()
    await graph.add("ci:deploy", "ci:build", "contains")
    await graph.add("ci:deploy", "ci:build", "dependency", "observed")
    await graph.add("ci:deploy", "ci:build", "sequence")
    pages = [await graph.page("ci:deploy", limit=2, offset=at) for at in (0, 2)]
    assert [page.total for page in pages] == [3, 3]
    types = [each.edge_type for page in pages for each in page.dependencies]
    assert types == ["dependency", "contains", "sequence"]
    first = await graph.page("ci:deploy", limit=1)
    await graph.remove("ci:deploy", "ci:build", "dependency")
    second = await graph.page("ci:deploy", limit=1, cursor=first.next_cursor)
    last = await graph.page("ci:deploy", limit=1, cursor=second.next_cursor)
    types = [each.edge_type for page in (first, second, last) for each in page.dependencies]
    assert types == ["dependency", "contains", "sequence"], "whatever goes meanwhile"
    assert last.next_cursor is None
    with pytest.raises(QueryFailed, match="next_cursor"):
        await graph.page("ci:deploy", cursor="none")


async def test_the_dependencies_of_a_record_are_those_of_its_latest_version(
    graph: GraphDriver,
) -> None:
    deploy, _ = await graph.pair()
    await graph.add("ci:deploy", "ci:build")
    second = analysed(code("d"))
    await graph.registry.reserve("ci:deploy", second, update=True)
    assert await graph.registry.settle(second) == "ci:deploy"
    assert await graph.edges("ci:deploy") == []
    assert await graph.edges(str(deploy.record_id)) == []
    former = await graph.edges(str(deploy.capability_id))
    assert former == [("ci:deploy>ci:build", "dependency", "template")]


async def test_ac07_discovery_tells_what_a_matched_capability_needs(
    graph: GraphDriver, embedder: Embedder
) -> None:
    await graph.has("ci:deploy", "a", intent="deploy the app")
    await graph.has("ci:build", "b", intent="compile sources")
    await graph.add("ci:deploy", "ci:build")
    await graph.add("ci:deploy", "ci:build", "sequence")

    async def discover(query: Discover) -> DiscoveryPage:
        return await on_discover(query, embedder, graph.stores.index, graph.stores.candidates)

    query = Discover(scope=SCOPE, intent="deploy the app")
    page = await discover_related(query, discover, graph.stores.dependencies)
    found = {hit.name: hit.dependencies for hit in page.hits if isinstance(hit, CapabilityHit)}
    assert [each.to_name for each in found["ci:deploy"]] == ["ci:build"]
    assert [each.edge_type for each in found["ci:deploy"]] == ["dependency"]
    assert found.get("ci:build", ()) == ()
    tools = query.model_copy(update={"type": "tool"})
    assert await discover_related(tools, discover, graph.stores.dependencies) == (
        await discover(tools)
    )


async def test_ac08_capabilities_are_listed_and_resolved_with_their_counts(
    graph: GraphDriver,
) -> None:
    await graph.pair()
    await graph.has("ci:test", "c")
    await graph.add("ci:deploy", "ci:build")
    await graph.add("ci:deploy", "ci:build", "contains")
    await graph.add("ci:test", "ci:deploy")

    listed = partial(on_list_capabilities, capabilities=graph.stores.capabilities)
    page = await list_counted(ListCapabilities(scope=SCOPE), listed, graph.stores.dependencies)
    assert {each.name: each.dependencies_count for each in page.capabilities} == {
        "ci:deploy": 3,
        "ci:build": 2,
        "ci:test": 1,
    }
    for asked, count in ((True, 3), (False, None)):
        query = ResolveCapability(scope=SCOPE, reference="ci:deploy", count_dependencies=asked)
        found = await resolve_counted(query, graph.resolve, graph.stores.dependencies)
        assert found.dependencies_count == count


async def test_ac11_dependencies_are_removed_by_type_or_all(graph: GraphDriver) -> None:
    await graph.pair()
    for edge_type in ("dependency", "contains", "sequence"):
        await graph.add("ci:deploy", "ci:build", edge_type)
    await graph.add("ci:build", "ci:deploy", "sequence")
    assert await graph.remove("ci:deploy", "ci:build", "contains") == 1
    assert await graph.remove("ci:deploy", "ci:build") == 2
    assert await graph.edges("ci:deploy") == [("ci:build>ci:deploy", "sequence", "template")]
    with pytest.raises(QueryFailed, match="has no dependency on ci:build") as refused:
        await graph.remove("ci:deploy", "ci:build")
    assert refused.value.code == "not_found"
    with pytest.raises(QueryFailed, match="no dependency of type contains"):
        await graph.remove("ci:build", "ci:deploy", "contains")


async def test_ac13_two_capabilities_may_depend_on_each_other_when_observed(
    graph: GraphDriver, caplog: pytest.LogCaptureFixture
) -> None:
    await graph.pair()
    await graph.observe(calls(("a", "b")))
    with caplog.at_level(logging.WARNING):
        await graph.observe(calls(("b", "a")))
    assert "call each other in a cycle" in caplog.text
    assert await graph.edges("ci:deploy") == [
        ("ci:build>ci:deploy", "contains", "inferred"),
        ("ci:deploy>ci:build", "contains", "inferred"),
    ]
    caplog.clear()
    await graph.observe(calls(("b", "a")))
    assert caplog.text == ""


async def test_ac13_templates_stay_acyclic_and_the_error_names_the_cycle(
    graph: GraphDriver,
) -> None:
    await graph.pair()
    await graph.has("ci:test", "c")
    await graph.add("ci:deploy", "ci:test")
    await graph.add("ci:test", "ci:build", "contains")
    for edge_type in ("dependency", "contains"):
        with pytest.raises(QueryFailed) as refused:
            await graph.add("ci:build", "ci:deploy", edge_type)
        assert refused.value.code == "conflict"
        assert "ci:build → ci:deploy → ci:test → ci:build" in str(refused.value)
    assert (await graph.add("ci:build", "ci:deploy", "sequence")).warning is None
    added = await graph.add("ci:build", "ci:deploy", "contains", "observed")
    assert added.warning is not None
    assert "ci:build → ci:deploy → ci:test → ci:build" in added.warning


async def test_ac13_of_templates_added_at_once_none_closes_a_cycle(graph: GraphDriver) -> None:
    names = ["ci:deploy", "ci:build", "ci:test", "ci:lint"]
    for letter, name in zip("abcd", names, strict=True):
        await graph.has(name, letter)
    pairs = [(one, other) for one in names for other in names if one != other]
    results = await asyncio.gather(
        *(graph.add(one, other) for one, other in pairs), return_exceptions=True
    )
    refused = [each for each in results if isinstance(each, BaseException)]
    assert all(isinstance(each, QueryFailed) and each.code == "conflict" for each in refused)
    assert len(results) - len(refused) == len(names) * (len(names) - 1) / 2


async def test_a_capability_cannot_depend_on_itself(graph: GraphDriver) -> None:
    deploy, _ = await graph.pair()
    for to in ("ci:deploy", str(deploy.record_id)):
        with pytest.raises(QueryFailed, match="ci:deploy cannot depend on itself") as refused:
            await graph.add("ci:deploy", to, "alternative")
        assert refused.value.code == "invalid"
    await graph.observe(calls(("a", "a")))
    assert await graph.edges("ci:deploy") == []


async def test_dependencies_do_not_leave_their_scope(graph: GraphDriver) -> None:
    await graph.pair()
    theirs = await graph.has("ci:deploy", "a", scope=ELSEWHERE)
    await graph.has("ci:build", "b", scope=ELSEWHERE)
    await graph.add("ci:deploy", "ci:build")
    await graph.observe(calls(("a", "b"), scope=ELSEWHERE))
    assert [each[1] for each in await graph.edges("ci:deploy")] == ["dependency"]
    page = await graph.page("ci:deploy", scope=ELSEWHERE)
    assert [each.edge_type for each in page.dependencies] == ["contains"]

    async def far(query: ResolveCapability) -> CapabilityRecord:
        return theirs

    graph.resolve = far  # as a name that reaches across scopes
    with pytest.raises(QueryFailed, match=r"of rival\.webapp: dependencies are kept inside"):
        await graph.page("cap:rival.webapp:ci:deploy")


async def test_what_is_private_to_others_is_in_no_list(graph: GraphDriver) -> None:
    await graph.pair()
    await graph.add("ci:deploy", "ci:build")
    await _make_private(graph, "ci:build", SCOPE)
    seen = {
        principal: (await graph.page("ci:deploy", principal=principal)).total
        for principal in (None, "agent-7", "agent-8")
    }
    assert seen == {None: 1, "agent-7": 1, "agent-8": 0}
    assert len((await graph.page("ci:deploy", principal="agent-8")).dependencies) == 0
    needs = await graph.stores.dependencies.needs(SCOPE, [ids.capability_id(SCOPE, code("a"))], 20)
    assert list(needs.values()) == [[]]
    shown = await graph.hypergraph(principal="agent-8")
    assert [node.name for node in shown.nodes] == ["ci:deploy"]
    assert (shown.total_nodes, shown.total_edges) == (1, 0)
    assert len((await graph.hypergraph(principal="agent-7")).nodes) == 2


async def _make_private(graph: GraphDriver, name: str, scope: Scope) -> None:
    record = await graph.registry.resolve(name, scope)
    async with graph.stores.pools.across() as session:
        await session.execute(
            "UPDATE capability_records SET visibility = 'private' WHERE record_id = $1",
            record.record_id,
        )


async def test_a_change_is_announced_once_it_is_made(graph: GraphDriver) -> None:
    await graph.pair()
    await graph.add("ci:deploy", "ci:build")
    await graph.add("ci:deploy", "ci:build")
    await graph.remove("ci:deploy", "ci:build")
    assert [type(message) for message in graph.said] == [GraphChanged, GraphChanged]
