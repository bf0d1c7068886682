"""Discovery through its handler, with a word-based model."""

import asyncio
from collections.abc import Sequence

import pytest
from typing_extensions import override

from pml_common.contracts.capability import Visibility
from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.dns import Fork, SetVisibility
from pml_common.contracts.registry import CapabilityHit, Discover, DiscoveryPage, ToolHit
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_registry.application import searching
from pml_registry.domain.documents import tool_terms
from pml_registry.domain.intents import WHOLE_CANDIDATES
from pml_registry.domain.ranking import Kind
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_learning_updated import on_learning_updated
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.vectors import Embedded, Embedder, IndexUnavailable, Near, Vector
from services.registry.tests.support.builders import (
    AUTHOR,
    ELSEWHERE,
    HASH,
    OTHER_HASH,
    SCOPE,
    SIMILAR_HASH,
    analysed,
    learning_update,
    listed,
    tool,
)
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import Stores
from services.registry.tests.support.vectors import Renamed

pytestmark = pytest.mark.integration

READ = tool("fs:read_text", "Returns the content of one file.")
WEATHER = tool("weather:forecast", "Tells tomorrow's temperature in a city.")


@pytest.fixture
async def filled(stores: Stores, embedder: Embedder) -> Stores:
    """Two tools, a listed capability that shows files, an unlisted one that draws."""
    await on_tools_listed(listed(READ), stores.tools, embedder)
    await on_tools_listed(listed(WEATHER, server="weather"), stores.tools, embedder)
    shows = analysed(intent="show one file to a person", tools=["fs:read_text"])
    draws = analysed(OTHER_HASH, intent="draw one file as art", tools=[])
    await StoreDriver(stores, embedder).named("fs:show", shows)
    await StoreDriver(stores, embedder).analysed(draws)
    await on_learning_updated([learning_update()], stores.capabilities, embedder)
    return stores


async def _discover(
    stores: Stores, embedder: Embedder, intent: str, *, scope: Scope = SCOPE, **more: object
) -> DiscoveryPage:
    query = Discover.model_validate({"scope": scope, "intent": intent, **more})
    return await on_discover(query, embedder, stores.index, stores.candidates)


async def test_tools_and_listed_capabilities_are_ranked_in_one_list(
    filled: Stores, embedder: Embedder
) -> None:
    page = await _discover(filled, embedder, "show file content")
    names = [hit.name for hit in page.hits]
    assert set(names[:2]) == {"fs:show", "read_text"}
    assert names[2:] == ["forecast"]
    assert page.total == 3
    scores = [hit.score for hit in page.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)


async def test_ac06_a_hit_has_what_a_call_needs(filled: Stores, embedder: Embedder) -> None:
    page = await _discover(filled, embedder, "show file content", limit=2)
    hits = {hit.type: hit for hit in page.hits}
    found, shown = hits["tool"], hits["capability"]
    assert isinstance(found, ToolHit)
    assert (found.id, found.description, found.input_schema) == (
        READ.tool_id,
        READ.description,
        READ.input_schema,
    )
    assert isinstance(shown, CapabilityHit)
    assert (shown.description, shown.tools_used) == ("show one file to a person", (READ.tool_id,))
    assert (shown.usage.count, shown.parameters_schema) == (1, analysed().parameters_schema)


async def test_a_hit_shows_how_a_program_calls_it(filled: Stores, embedder: Embedder) -> None:
    page = await _discover(filled, embedder, "show file content", limit=2)
    signatures = {hit.name: " ".join(hit.signature.split()) for hit in page.hits}
    assert signatures == {
        "read_text": "mcp.fs.read_text(args?: { [key: string]: any }): Promise<any>",
        "fs:show": r"capabilities.fs_show(args?: { "
        r'/** (default "a\u0000b") */ path?: unknown; }): Promise<any>',
    }
    assert {hit.name: hit.call for hit in page.hits} == {
        "read_text": "const result = await mcp.fs.read_text();",
        "fs:show": "const result = await capabilities.fs_show();",
    }
    by_type = {hit.type: hit for hit in page.hits}
    assert getattr(by_type["tool"], "result_type", None) == "any"
    assert getattr(by_type["capability"], "mcp_tool", None) == "cap_fs_show"


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("fs:*", ["forecast"]),
        ("cap:fs:show", ["forecast", "read_text"]),
        ("nothing:*", ["forecast", "fs:show", "read_text"]),
    ],
)
async def test_what_a_policy_denies_is_neither_found_nor_counted(
    filled: Stores, embedder: Embedder, pattern: str, left: list[str]
) -> None:
    policy = Policy(rules=(PolicyRule(pattern=pattern, verdict="deny"),))
    page = await _discover(filled, embedder, "show file content", policy=policy)
    assert (sorted(hit.name for hit in page.hits), page.total) == (left, len(left))


async def test_a_policy_is_applied_before_pages_are_cut(filled: Stores, embedder: Embedder) -> None:
    policy = Policy(rules=(PolicyRule(pattern="fs:read_text", verdict="deny"),))
    page = await _discover(filled, embedder, "show file content", policy=policy, limit=1)
    assert ([hit.name for hit in page.hits], page.total) == (["forecast"], 1)


async def test_a_capability_that_never_succeeded_is_not_found(
    filled: Stores, embedder: Embedder
) -> None:
    intent = "draw one file as art"
    page = await _discover(filled, embedder, intent)
    assert intent not in [hit.description for hit in page.hits]


async def test_of_a_record_the_latest_version_alone_is_found(
    filled: Stores, embedder: Embedder
) -> None:
    driver = StoreDriver(filled, embedder)
    better = analysed(SIMILAR_HASH, intent="show one file to everybody", tools=["fs:read_text"])
    await driver.reserve("fs:show", better, update=True)
    await driver.settle(better)
    page = await _discover(filled, embedder, "show one file to a person", type="capability")
    assert [(hit.name, hit.description) for hit in page.hits] == [
        ("fs:show", "show one file to everybody")
    ]
    assert page.total == 1
    assert await driver.names(unlisted=False) == ["fs:show"]


@pytest.mark.parametrize(
    ("type_", "names"), [("tool", {"read_text", "forecast"}), ("capability", {"fs:show"})]
)
async def test_a_single_kind_can_be_requested(
    filled: Stores, embedder: Embedder, type_: str, names: set[str]
) -> None:
    page = await _discover(filled, embedder, "show file content", type=type_)
    assert {hit.name for hit in page.hits} == names


async def test_hits_below_the_minimum_score_are_neither_shown_nor_counted(
    filled: Stores, embedder: Embedder
) -> None:
    page = await _discover(filled, embedder, "temperature in a city tomorrow", min_score=0.4)
    assert ([hit.name for hit in page.hits], page.total) == (["forecast"], 1)


async def test_pages_continue_one_list(filled: Stores, embedder: Embedder) -> None:
    whole = await _discover(filled, embedder, "show file content")
    parts = [
        await _discover(filled, embedder, "show file content", limit=1, offset=offset)
        for offset in range(4)
    ]
    assert [hit for part in parts for hit in part.hits] == list(whole.hits)
    assert {part.total for part in parts} == {3}


async def test_an_intent_of_stop_words_is_searched_by_meaning_alone(
    filled: Stores, embedder: Embedder
) -> None:
    assert (await _discover(filled, embedder, "of the")).total == 3
    assert (await _discover(filled, embedder, "& | ! ( 'x' \\ :* \x00")).total == 3


async def test_no_scope_finds_another_scopes_records(filled: Stores, embedder: Embedder) -> None:
    page = await _discover(filled, embedder, "show file content", scope=ELSEWHERE)
    assert page == DiscoveryPage(hits=(), total=0)


async def test_vectors_of_another_model_are_not_compared(
    filled: Stores, embedder: Embedder
) -> None:
    class Newer:
        async def model(self) -> str:
            return "newer"

        async def embed(self, texts: Sequence[str]) -> Embedded:
            return Embedded("newer", (await embedder.embed(texts)).vectors)

    page = await _discover(filled, Newer(), "content", min_score=0.01)
    (hit,) = page.hits
    assert hit.name == "read_text"
    assert hit.score == pytest.approx(tool_terms(READ)["content"] / 2)


async def test_a_small_scope_finds_its_own_among_many_of_a_large_one(
    stores: Stores, embedder: Embedder
) -> None:
    many = [tool(f"fs:t{number}", "file content") for number in range(3 * WHOLE_CANDIDATES)]
    await on_tools_listed(listed(*many), stores.tools, embedder)
    theirs = listed(tool("fs:read", "something else"), scope=ELSEWHERE)
    await on_tools_listed(theirs, stores.tools, embedder)
    page = await _discover(stores, embedder, "file content", scope=ELSEWHERE)
    assert [hit.name for hit in page.hits] == ["read"]
    page = await _discover(stores, embedder, "file content", limit=5)
    assert (len(page.hits), page.total >= WHOLE_CANDIDATES) == (5, True)


async def test_every_clause_of_a_compound_intent_is_served(
    stores: Stores, embedder: Embedder
) -> None:
    reads = [tool(f"fs:read_{n}", f"Returns a text file, way {n}.") for n in range(5)]
    await on_tools_listed(listed(*reads), stores.tools, embedder)
    await on_tools_listed(listed(WEATHER, server="weather"), stores.tools, embedder)
    whole = "returns a text file, way 1, and tells a city"
    page = await _discover(stores, embedder, whole, limit=2)
    assert {hit.name for hit in page.hits} == {"read_1", "forecast"}


async def test_a_tool_is_found_by_a_word_of_its_parameters(
    stores: Stores, embedder: Embedder
) -> None:
    schema: JsonObject = {"properties": {"latitude": {"type": "number"}}}
    spot = tool("geo:spot", "Shows a place.").model_copy(update={"input_schema": schema})
    plain = tool("geo:mark", "Shows a place.")
    await on_tools_listed(listed(plain, spot, server="geo"), stores.tools, embedder)
    page = await _discover(stores, embedder, "place by latitude")
    assert [hit.name for hit in page.hits] == ["spot", "mark"]


async def test_of_equal_capabilities_the_reliable_one_leads(
    stores: Stores, embedder: Embedder
) -> None:
    for code_hash, name, successes in ((HASH, "fs:aone", 1), (OTHER_HASH, "fs:bone", 20)):
        analysis = analysed(code_hash, intent="show one file", tools=[])
        await StoreDriver(stores, embedder).named(name, analysis)
        learnt = learning_update(20, code_hash=code_hash, successes=successes)
        await on_learning_updated([learnt], stores.capabilities, embedder)
    page = await _discover(stores, embedder, "show one file")
    assert [hit.name for hit in page.hits] == ["fs:bone", "fs:aone"]
    assert page.hits[1].score < 0.7 * page.hits[0].score


async def test_a_private_capability_is_found_by_its_owner_alone(
    filled: Stores, embedder: Embedder
) -> None:
    driver = StoreDriver(filled, embedder)
    await driver.change("fs:show", SetVisibility(visibility="private"))
    for principal, names in ((AUTHOR, ["fs:show"]), ("agent-8", []), (None, ["fs:show"])):
        page = await _discover(
            filled, embedder, "show file content", type="capability", principal=principal
        )
        assert [hit.name for hit in page.hits] == names
        assert page.total == len(names)


async def test_a_capability_in_two_records_is_found_by_others_while_one_of_them_is_not_private(
    filled: Stores, embedder: Embedder
) -> None:
    """However the changes of the two fall together."""
    driver = StoreDriver(filled, embedder)
    await driver.change("fs:show", Fork(name="fs:copy"))

    async def found(*visibilities: Visibility) -> bool:
        await asyncio.gather(
            *(
                driver.change(name, SetVisibility(visibility=each))
                for name, each in zip(("fs:show", "fs:copy"), visibilities, strict=True)
            )
        )
        page = await _discover(
            filled, embedder, "show file content", type="capability", principal="agent-8"
        )
        return page.total > 0

    for _ in range(5):
        assert not await found("private", "private")
        assert await found("private", "project")
        assert await found("project", "private")


class AwaySearch:
    """An index that is away."""

    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[Near]:
        raise IndexUnavailable("Qdrant does not answer")


async def test_without_the_index_the_words_find_and_the_page_is_degraded(
    filled: Stores, embedder: Embedder
) -> None:
    whole = await _discover(filled, embedder, "show file content")
    query = Discover(scope=SCOPE, intent="show file content")
    page = await on_discover(query, embedder, AwaySearch(), filled.candidates)
    assert (whole.degraded, page.degraded) == (False, True)
    by_words = {hit.id: hit.score for hit in page.hits}
    # Stored vectors still count; how rare a word is depends on the candidates.
    scores = {hit.id: hit.score for hit in whole.hits if hit.id in by_words}
    assert by_words == pytest.approx(scores, abs=0.02)
    assert {hit.name for hit in page.hits} == {"fs:show", "read_text"}


async def test_without_the_embedder_the_words_find_and_the_page_is_degraded(
    filled: Stores, embedder: Embedder
) -> None:
    away = Renamed(embedder, "hash", fails_after=0)
    page = await _discover(filled, away, "show file content")
    assert (page.degraded, page.total) == (True, 2)
    assert {hit.name for hit in page.hits} == {"fs:show", "read_text"}
    assert all(0.0 < hit.score < 0.6 for hit in page.hits)
    nothing = await _discover(filled, away, "of the")
    assert nothing == DiscoveryPage(hits=(), total=0, degraded=True)


class SilentEmbedder(Embedder):
    """A model that does not finish loading."""

    @override
    async def model(self) -> str:
        return "hash"

    @override
    async def embed(self, texts: Sequence[str]) -> Embedded:
        return await asyncio.get_running_loop().create_future()


async def test_an_embedder_that_does_not_answer_is_not_waited_for(
    filled: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "EMBED_WITHIN_S", 0.01)
    page = await _discover(filled, SilentEmbedder(), "show file content")
    assert (page.degraded, page.total) == (True, 2)
