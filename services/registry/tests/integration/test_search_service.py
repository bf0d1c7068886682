"""The registry's process with Qdrant or an embedding endpoint in its settings, on NATS."""

import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest

from libs.pml_common.tests.support.harness import key_files
from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import catalog
from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_common.contracts.search_index import IndexState, Reindex, ShowIndex
from pml_common.health import Checks, Detail
from pml_registry.app import serve
from pml_registry.settings import RegistrySettings
from services.registry.tests.support.builders import SCOPE, listed, tool
from services.registry.tests.support.embeddings import embedded, embeddings

pytestmark = pytest.mark.integration

READ = tool("fs:read", "Returns the content of one file.")


@asynccontextmanager
async def running(
    nats_url: str, dsn: str, **settings: object
) -> AsyncGenerator[tuple[NatsBus, Checks]]:
    """Run a registry; yield the bus of the other services, and its health checks."""
    who = all_services_identity()
    bus = await NatsBus.connect(nats_url, service="registry", identity=who)
    others = await NatsBus.connect(nats_url, service="gateway", identity=who)
    with key_files("registry") as keys:
        chosen = RegistrySettings.model_validate({"postgres_dsn": dsn, **settings})
        async with serve(chosen.model_copy(update=keys), bus) as checks:
            try:
                yield others, checks
            finally:
                await bus.drain()
                await others.drain()


def closed_port() -> int:
    """A port of loopback at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


async def _discover(bus: NatsBus) -> DiscoveryPage:
    return await bus.request(catalog.DISCOVER, Discover(scope=SCOPE, intent="read a file"))


async def _index(bus: NatsBus) -> IndexState:
    return await bus.request(catalog.SHOW_INDEX, ShowIndex(scope=SCOPE))


async def test_with_qdrant_away_from_the_start_words_find(nats_url: str, postgres_dsn: str) -> None:
    away = f"http://127.0.0.1:{closed_port()}"
    settings = {"registry_vector_index": "qdrant", "registry_qdrant_url": away}
    async with running(nats_url, postgres_dsn, **settings) as (bus, checks):
        await bus.publish(listed(READ))

        async def is_found() -> bool:
            page = await _discover(bus)
            return page.degraded and [hit.id for hit in page.hits] == [READ.tool_id]

        await eventually(is_found)
        state = await bus.request(catalog.REINDEX, Reindex(scope=SCOPE, principal="mira"))
        assert state.index == "qdrant"

        async def has_a_problem() -> bool:
            run = (await _index(bus)).reindex
            return run is not None and "Qdrant" in (run.problem or "")

        await eventually(has_a_problem)
        found = [await check() for check in checks.values()]
        assert [each for each in found if each is not None and not isinstance(each, Detail)] == []


async def test_an_endpoint_embeds_what_is_stored_and_asked(
    nats_url: str, postgres_dsn: str
) -> None:
    async def answer(texts: Sequence[str]) -> tuple[str, bytes]:
        return "200 OK", embedded([[1.0, float(len(text))] for text in texts])

    async with embeddings(answer) as seen:
        settings = {"registry_embedding_url": seen.url, "registry_embedding_model": "small"}
        async with running(nats_url, postgres_dsn, **settings) as (bus, checks):
            await bus.publish(listed(READ))

            async def is_found() -> bool:
                page = await _discover(bus)
                return bool(page.hits) and not page.degraded

            await eventually(is_found)
            assert await checks["embeddings"]() is None
            (model,) = (await _index(bus)).models
    assert (model.name, model.dimension, model.state) == ("small", 2, "serving")
    assert {*seen.models} == {"small"}
