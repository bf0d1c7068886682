"""The registry service on real NATS and Postgres, with the real model."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar
from uuid import uuid4

import pytest

from libs.pml_common.tests.support.fakes import CrashAfterCommitBus
from libs.pml_common.tests.support.harness import key_files
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.errors import QueryFailed
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.gateway import ObservedOutput, OutputsObserved
from pml_common.contracts.registry import (
    CapabilityChanged,
    CatalogChanged,
    DescribeCapabilities,
    Discover,
    DiscoveryPage,
    ListCapabilities,
    ListTools,
    ReservedName,
    ReserveName,
    ResolveCapability,
    SettleName,
)
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_registry.app import serve
from pml_registry.settings import RegistrySettings
from services.registry.tests.support.builders import (
    SCOPE,
    TrustedHashes,
    analysed,
    edges,
    learning_update,
    listed,
    tool,
)

pytestmark = pytest.mark.integration

M = TypeVar("M", bound=Message)

FILES = (
    tool("fs:read_text_file", "Read the complete contents of a file as text."),
    tool("fs:write_file", "Create a new file or overwrite an existing one with new content."),
    tool("fs:list_directory", "Get a detailed listing of all entries in a path."),
    tool("fs:move_file", "Move or rename files and directories."),
)
OTHERS = (
    tool("git:commit", "Records changes to the repository."),
    tool("weather:forecast", "Predicts temperature and rain for a place."),
    tool("mail:send", "Sends an electronic message to a recipient."),
)


@pytest.fixture(autouse=True)
def hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the samples' invented hashes."""
    monkeypatch.setattr("pml_registry.app.CodeHashes", TrustedHashes)


@asynccontextmanager
async def _registry(bus: Bus, dsn: str) -> AsyncGenerator[Bus]:
    with key_files("registry") as keys:
        settings = RegistrySettings(postgres_dsn=dsn).model_copy(update=keys)
        async with serve(settings, bus) as checks:
            try:
                yield bus
                assert {name: await check() for name, check in checks.items()} == {
                    "postgres": None,
                    "embeddings": None,
                }
            finally:
                await bus.drain()


@pytest.fixture
async def other_services(nats_url: str) -> AsyncGenerator[NatsBus]:
    """The bus as used by the other services."""
    bus = await NatsBus.connect(nats_url, service="gateway", identity=all_services_identity())
    yield bus
    await bus.drain()


async def _published(bus: Bus, entity: str, kind: type[M]) -> list[M]:
    recorded = await bus.history(SCOPE, entity)
    return [entry.message for entry in recorded if isinstance(entry.message, kind)]


async def _tools(bus: Bus) -> Sequence[ToolDefinition]:
    return (await bus.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE))).tools


async def _resolve(bus: Bus, reference: str) -> CapabilityRecord:
    query = ResolveCapability(scope=SCOPE, reference=reference)
    return await bus.request(catalog.RESOLVE_CAPABILITY, query)


async def _reserve(bus: Bus, analysis: ExecutionAnalyzed) -> ReservedName | None:
    """Reserve fs:ensure; None where another program has it."""
    query = ReserveName(
        scope=SCOPE, workflow_id=analysis.workflow_id, name="fs:ensure", analysis=analysis
    )
    try:
        return await bus.request(catalog.RESERVE_NAME, query, timeout=PATIENCE_S)
    except QueryFailed as failed:
        if failed.code != "conflict":
            raise
        return None


async def _discover(bus: Bus, intent: str) -> DiscoveryPage:
    return await bus.request(catalog.DISCOVER, Discover(scope=SCOPE, intent=intent, limit=3))


async def test_outputs_that_the_gateway_observed_are_listed_with_their_tool(
    other_services: NatsBus, nats_url: str, postgres_dsn: str
) -> None:
    read = tool("fs:read")
    schema: JsonObject = {"type": "string"}
    output = ObservedOutput(name="read", definition_hash=read.definition_hash, result_schema=schema)
    async with _registry(
        await NatsBus.connect(nats_url, service="registry", identity=all_services_identity()),
        postgres_dsn,
    ):
        await other_services.publish(listed(read))
        await eventually(lambda: _tools(other_services))
        observed = OutputsObserved(scope=SCOPE, event_id=uuid4(), server="fs", outputs=(output,))
        await other_services.publish(observed)

        async def learned() -> bool:
            return (await _tools(other_services))[0].learned_output == schema

        await eventually(learned)


async def test_a_capability_is_created_learned_listed_and_found(
    other_services: NatsBus, nats_url: str, postgres_dsn: str
) -> None:
    analysis = analysed(name="fs:ensure", intent="make sure that the notes exist")
    entity = str(analysis.capability.capability_id)
    async with _registry(
        await NatsBus.connect(nats_url, service="registry", identity=all_services_identity()),
        postgres_dsn,
    ):
        await other_services.publish(learning_update())
        reserve = ReserveName(
            scope=SCOPE, workflow_id=analysis.workflow_id, name="fs:ensure", analysis=analysis
        )
        reserved = await other_services.request(catalog.RESERVE_NAME, reserve)
        assert reserved.purpose == "create"
        settle = SettleName(scope=SCOPE, workflow_id=analysis.workflow_id, succeeded=True)
        settled = await other_services.request(catalog.SETTLE_NAME, settle)
        assert settled.name == "fs:ensure"
        assert (await _resolve(other_services, "fs:ensure")).named
        await other_services.publish(analysis)

        async def published() -> list[CapabilityChanged]:
            said = await _published(other_services, entity, CapabilityChanged)
            return said if len(said) == 3 else []

        said = await eventually(published)
        # It is first listed by its name or by its first success, whichever comes first.
        assert {message.change for message in said} in (
            {"created", "learned", "named"},
            {"created", "listed", "named"},
        )
        record = await _resolve(other_services, "cap:fs:ensure")
        assert (record.listed, record.usage.count) == (True, 1)
        page = await other_services.request(
            catalog.LIST_CAPABILITIES, ListCapabilities(scope=SCOPE)
        )
        assert [listed.name for listed in page.capabilities] == ["fs:ensure"]
        query = DescribeCapabilities(scope=SCOPE, references=("fs_ensure",))
        described = await other_services.request(catalog.DESCRIBE_CAPABILITIES, query)
        assert [one.capability and one.capability.name for one in described.references] == [
            "fs:ensure"
        ]
        found = await _discover(other_services, "create my notebook unless it is there")
        assert [hit.name for hit in found.hits] == ["fs:ensure"]


@pytest.mark.parametrize(
    "intent",
    [
        "show me what is inside this document",
        "open notes.txt and give me its words",
        "load a configuration from disk",
        "print a README",
    ],
)
async def test_the_tool_that_reads_files_is_found_by_differently_worded_intents(
    other_services: NatsBus, nats_url: str, postgres_dsn: str, intent: str
) -> None:
    async with _registry(
        await NatsBus.connect(nats_url, service="registry", identity=all_services_identity()),
        postgres_dsn,
    ):
        await other_services.publish(listed(*FILES))
        for other in OTHERS:
            await other_services.publish(listed(other, server=other.server))

        async def all_listed() -> bool:
            return len(await _tools(other_services)) == len(FILES) + len(OTHERS)

        await eventually(all_listed)
        hits = (await _discover(other_services, intent)).hits
        assert "fs:read_text_file" in [hit.id for hit in hits]


async def test_queries_before_the_model_is_loaded_are_answered(
    other_services: NatsBus, nats_url: str, postgres_dsn: str
) -> None:
    async with _registry(
        await NatsBus.connect(nats_url, service="registry", identity=all_services_identity()),
        postgres_dsn,
    ):
        assert await _discover(other_services, "read a file") == DiscoveryPage(hits=(), total=0)


async def test_messages_lost_in_a_crash_are_published_once_and_nothing_is_duplicated(
    other_services: NatsBus, nats_url: str, postgres_dsn: str
) -> None:
    analysis, observed = analysed(), edges(("fs:stat", "fs:read"))
    entity = str(analysis.capability.capability_id)
    bus = await CrashAfterCommitBus.connect(
        nats_url, service="registry", identity=all_services_identity()
    )
    async with _registry(bus, postgres_dsn):
        for message in (analysis, learning_update(), observed, listed(tool("fs:read"))):
            await other_services.publish(message)

        async def published() -> bool:
            changes = await _published(other_services, entity, CapabilityChanged)
            catalogues = await _published(other_services, "fs", CatalogChanged)
            return len(changes) == 2 and len(catalogues) == 1

        await eventually(published)
        record = await _resolve(other_services, str(analysis.capability.capability_id))
        assert (record.usage.count, len(await _tools(other_services))) == (1, 1)
        assert await other_services.dead_letters() == []


async def test_concurrent_replicas_agree(
    other_services: NatsBus, nats_url: str, postgres_dsn: str
) -> None:
    hashes = [f"a7f3{number:060x}" for number in range(12)]
    async with AsyncExitStack() as replicas:
        buses = [
            await NatsBus.connect(nats_url, service="registry", identity=all_services_identity())
            for _ in range(2)
        ]
        await asyncio.gather(
            *(replicas.enter_async_context(_registry(bus, postgres_dsn)) for bus in buses)
        )
        analyses = [analysed(code_hash) for code_hash in hashes]
        reserved = await asyncio.gather(*(_reserve(other_services, each) for each in analyses))
        (winner,) = (each for each, reply in zip(analyses, reserved, strict=True) if reply)
        for each in analyses:
            settle = SettleName(scope=SCOPE, workflow_id=each.workflow_id, succeeded=True)
            await other_services.request(catalog.SETTLE_NAME, settle)
        for code_hash in hashes:
            await other_services.publish(learning_update(2, code_hash=code_hash))
            await other_services.publish(learning_update(1, code_hash=code_hash))
        query = ListCapabilities(scope=SCOPE, limit=50)

        async def all_listed() -> Sequence[CapabilityRecord]:
            page = await other_services.request(catalog.LIST_CAPABILITIES, query)
            learned = all(record.usage.count == 2 for record in page.capabilities)
            return page.capabilities if page.total == len(hashes) and learned else ()

        records = await eventually(all_listed)
        assert len({record.name for record in records}) == len(hashes)
        (named,) = (record for record in records if record.named)
        assert (named.name, named.capability_id) == ("fs:ensure", winner.capability.capability_id)
