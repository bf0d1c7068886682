"""Runs and success rates of a capability say the same wherever they are read."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import pytest

from libs.pml_local.tests.support.databases import Databases, Schema
from pml_cli.client import Client
from pml_cli.commands.reading import capabilities
from pml_cli.output import Output
from pml_common.contracts import catalog
from pml_common.storage.schema import open_scoped_schema
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.entrypoints.mcp.meta_tools import PML_LIST_CAPABILITIES
from pml_gateway.ports import Caller
from pml_registry.adapters.background_embedder import BackgroundEmbedder
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_list_capabilities import on_list_capabilities
from pml_registry.entrypoints.bus.on_records import on_query_records, on_whois_record
from pml_registry.ports.vectors import Embedder
from services.gateway.tests.support.harness import World, running_world
from services.registry.tests.support.builders import (
    HASH,
    OTHER_HASH,
    SCOPE,
    analysed,
    learning_update,
)
from services.registry.tests.support.hash_embedder import HashEmbedder
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import REGISTRY, Stores, stores_on

pytestmark = pytest.mark.integration

Json = dict[str, Any]
INTENT = "make sure that a file exists"
OF_FIRST = learning_update(20, code_hash=HASH, value=(0.8, 0.95, 1.0))
OF_LATEST = learning_update(8, code_hash=OTHER_HASH, successes=4, value=(0.2, 0.52, 0.8))


@asynccontextmanager
async def _registry(databases: Databases) -> AsyncGenerator[tuple[Stores, Embedder]]:
    """The registry's stores and an embedder, with a capability whose second version fails more."""
    embedder = BackgroundEmbedder(HashEmbedder.model_name, HashEmbedder)
    async with (
        databases.copy(REGISTRY) as dsn,
        open_scoped_schema(dsn, "registry", "pml_registry") as pools,
    ):
        stores = stores_on(pools)
        driver = StoreDriver(stores, embedder)
        await driver.named("fs:ensure", analysed(intent=INTENT))
        second = analysed(OTHER_HASH, intent=INTENT)
        await driver.reserve("fs:ensure", second, update=True)
        await driver.settle(second)
        await driver.learned(OF_FIRST, OF_LATEST)
        yield stores, embedder
        await embedder.aclose()


async def _serve(bus: MemoryBus, stores: Stores, embedder: Embedder) -> None:
    listed = partial(on_list_capabilities, capabilities=stores.capabilities)
    await bus.serve(catalog.LIST_CAPABILITIES, listed)
    resolution = StoreDriver(stores, embedder).resolution
    whois = partial(
        on_whois_record, resolution=resolution, records=stores.records, checks=stores.checks
    )
    await bus.serve(catalog.WHOIS_RECORD, whois)
    await bus.serve(catalog.QUERY_RECORDS, partial(on_query_records, records=stores.records))
    discover = partial(
        on_discover, embedder=embedder, index=stores.index, candidates=stores.candidates
    )
    await bus.serve(catalog.DISCOVER, discover)


@asynccontextmanager
async def _gateway(databases: Databases) -> AsyncGenerator[World]:
    async with (
        databases.copy(Schema("gateway", "pml_gateway")) as dsn,
        open_scoped_schema(dsn, "gateway", "pml_gateway") as pool,
        running_world(pool, peers_there=False) as world,
    ):
        yield world


async def _answer(world: World, path: str, **asked: object) -> Json:
    given = {key: str(value) for key, value in asked.items()}
    answer = await world.http.get(path, params=given)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_five_places_tell_the_runs_and_the_rate_of_the_latest_version(
    databases: Databases, capsys: pytest.CaptureFixture[str]
) -> None:
    async with _registry(databases) as (stores, embedder), _gateway(databases) as world:
        await _serve(MemoryBus(world.broker), stores, embedder)
        expected = OF_LATEST.usage.model_dump(mode="json")
        assert expected["counts"] == "version"

        listed = await _answer(world, "/api/capabilities")
        records = await _answer(world, "/api/dns/records")
        whois = await _answer(world, "/api/dns/whois", name="fs:ensure")
        found = await world.http.post("/api/discover", json={"intent": INTENT})
        hits = [hit for hit in found.json()["hits"] if hit["type"] == "capability"]
        told = [listed["capabilities"][0], records["records"][0], whois, whois["record"], hits[0]]
        assert [each["usage"] for each in told] == [expected] * len(told)

        total = whois["record_usage"]
        assert (total["counts"], total["count"], total["success_count"]) == ("record", 28, 24)
        first = await _answer(world, "/api/dns/whois", name="fs:ensure@1")
        assert first["usage"] == OF_FIRST.usage.model_dump(mode="json")
        assert first["record_usage"] == total

        agents = world.parts.use_cases.agents
        over_mcp = await PML_LIST_CAPABILITIES.call(agents, Caller(SCOPE, "mira"), {})
        answer = cast(Json, over_mcp["structuredContent"])
        (one,) = answer["capabilities"]
        assert (answer["counts"], one["runs"], one["success_rate"]) == ("version", 8, 0.52)
        assert json.loads(cast(Json, over_mcp)["content"][0]["text"]) == answer

        class Answers:
            def get(self, path: str, **_: object) -> Json:
                return {"/api/capabilities": listed}[path]

        capabilities(cast(Client, Answers()), Output(as_json=False), None)
        printed = capsys.readouterr()
        assert printed.out.splitlines()[1].split()[:4] == ["fs:ensure", "8", "52%", "(20-80)"]
        assert printed.err == "runs and success are those of the latest version\n"
