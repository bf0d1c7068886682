"""The tool catalog and graph through their handlers."""

import logging
from collections.abc import Sequence

import pytest

from pml_common.bus.errors import Retryable
from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import CatalogChanged, ListTools
from pml_common.contracts.scope import Scope
from pml_registry.entrypoints.bus.on_list_tools import on_list_tools
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.vectors import Embedded, Embedder
from services.registry.tests.support.builders import ELSEWHERE, SCOPE, listed, tool
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration


class CountingEmbedder:
    """Counts embedded texts; `before` runs ahead of each result."""

    def __init__(self, embedder: Embedder, name: str | None = None) -> None:
        self._embedder = embedder
        self._name = name
        self.texts: list[str] = []

    async def model(self) -> str:
        return self._name or await self._embedder.model()

    async def embed(self, texts: Sequence[str]) -> Embedded:
        self.texts += texts
        return Embedded(await self.model(), (await self._embedder.embed(texts)).vectors)


@pytest.fixture
def counting(embedder: Embedder) -> CountingEmbedder:
    """A counting embedder."""
    return CountingEmbedder(embedder)


async def _catalog(
    stores: Stores, server: str | None = None, scope: Scope = SCOPE
) -> list[tuple[str, str]]:
    found = await on_list_tools(ListTools(scope=scope, server=server), stores.tools)
    return [(known.tool_id, known.description) for known in found.tools]


async def _list(stores: Stores, embedder: Embedder, *messages: ToolsListed) -> list[Message]:
    said = [await on_tools_listed(message, stores.tools, embedder) for message in messages]
    return [message for messages in said for message in messages]


async def test_a_list_becomes_the_catalog_of_its_server(stores: Stores, embedder: Embedder) -> None:
    message = listed(tool("fs:read", "Reads."), tool("fs:write", "a\x00b"))
    (published,) = await _list(stores, embedder, message)
    assert published == CatalogChanged(
        scope=SCOPE, event_id=ids.effect_id(message.event_id, "catalog-changed"), server="fs"
    )
    assert await _catalog(stores) == [("fs:read", "Reads."), ("fs:write", "a\x00b")]


async def test_a_new_list_replaces_the_old_one_of_its_server_alone(
    stores: Stores, embedder: Embedder
) -> None:
    await _list(
        stores,
        embedder,
        listed(tool("git:log"), server="git"),
        listed(tool("fs:gone"), tool("fs:read", "old"), tool("fs:same")),
        listed(tool("fs:read", "new"), tool("fs:same"), tool("fs:stat")),
    )
    assert await _catalog(stores) == [
        ("fs:read", "new"),
        ("fs:same", ""),
        ("fs:stat", ""),
        ("git:log", ""),
    ]
    assert await _catalog(stores, "git") == [("git:log", "")]
    assert await _catalog(stores, "nobody") == []


async def test_a_server_without_tools_has_none_in_the_catalog(
    stores: Stores, embedder: Embedder
) -> None:
    messages = await _list(stores, embedder, listed(tool("fs:read")), listed())
    assert len(messages) == 2
    assert await _catalog(stores) == []


async def test_only_changed_definitions_are_embedded(
    stores: Stores, counting: CountingEmbedder
) -> None:
    await _list(stores, counting, listed(tool("fs:a"), tool("fs:b", "old")))
    counting.texts.clear()
    await _list(stores, counting, listed(tool("fs:a"), tool("fs:b", "new")))
    assert counting.texts == ["fs: b. new"]


async def test_the_same_list_again_is_no_change(stores: Stores, counting: CountingEmbedder) -> None:
    await _list(stores, counting, listed(tool("fs:read")))
    counting.texts.clear()
    assert await _list(stores, counting, listed(tool("fs:read"))) == []
    assert counting.texts == []


async def test_another_model_embeds_again_and_changes_nothing_visible(
    stores: Stores, embedder: Embedder
) -> None:
    await _list(stores, embedder, listed(tool("fs:read")))
    newer = CountingEmbedder(embedder, "newer")
    assert await _list(stores, newer, listed(tool("fs:read"))) == []
    assert newer.texts == ["fs: read"]
    assert (await stores.tools.server(SCOPE, "fs")).tools["fs:read"].models[-1] == "newer"


async def test_a_list_delivered_twice_publishes_the_same(
    stores: Stores, embedder: Embedder
) -> None:
    message = listed(tool("fs:read"))
    (first,) = await _list(stores, embedder, message)
    await _list(stores, embedder, listed(tool("fs:stat")))
    assert await _list(stores, embedder, message) == [first]
    assert await _catalog(stores) == [("fs:stat", "")]


async def test_an_older_list_delivered_late_replaces_no_newer_one(
    stores: Stores, embedder: Embedder
) -> None:
    newer, older = listed(tool("fs:new"), minutes=2), listed(tool("fs:old"), minutes=1)
    assert len(await _list(stores, embedder, newer, older)) == 1
    assert await _catalog(stores) == [("fs:new", "")]
    await _list(stores, embedder, listed(tool("fs:unknown when")))
    assert (await stores.tools.server(SCOPE, "fs")).listed_at == newer.listed_at


async def test_tools_without_a_valid_name_are_ignored_with_a_warning(
    stores: Stores, embedder: Embedder, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await _list(stores, embedder, listed(tool("fs:re ad"), tool("git:log"), tool("fs:stat")))
    assert "2 of its 3 tools are ignored" in caplog.text
    assert await _catalog(stores) == [("fs:stat", "")]


async def test_rows_that_change_while_texts_are_embedded_are_retried(
    stores: Stores, embedder: Embedder
) -> None:
    await _list(stores, embedder, listed(tool("fs:read", "one")))
    message = listed(tool("fs:read", "one"), tool("fs:new"))

    class Slow(CountingEmbedder):
        async def embed(self, texts: Sequence[str]) -> Embedded:
            await _list(stores, embedder, listed(tool("fs:read", "two")))
            return await super().embed(texts)

    with pytest.raises(Retryable, match="fs"):
        await on_tools_listed(message, stores.tools, Slow(embedder))
    assert len(await _list(stores, embedder, message)) == 1
    assert await _catalog(stores) == [("fs:new", ""), ("fs:read", "one")]


async def test_many_tools_are_embedded_and_stored(stores: Stores, embedder: Embedder) -> None:
    many = [tool(f"fs:t{number:03}") for number in range(100)]
    await _list(stores, embedder, listed(*many))
    assert len(await _catalog(stores)) == 100


async def test_no_scope_sees_or_changes_another(stores: Stores, embedder: Embedder) -> None:
    await _list(stores, embedder, listed(tool("fs:ours")))
    await _list(stores, embedder, listed(tool("fs:theirs"), scope=ELSEWHERE))
    assert await _catalog(stores) == [("fs:ours", "")]
    assert await _catalog(stores, scope=ELSEWHERE) == [("fs:theirs", "")]
