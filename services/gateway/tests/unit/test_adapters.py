"""Small adapters: names, announcements, routing, deadlines, settings."""

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import ValidationError

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.errors import BusUnavailable
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import CapabilityChanged
from pml_common.contracts.tool import ToolDefinition
from pml_common.service import CannotStart
from pml_common.storage.errors import StorageUnavailable
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.capability_names import CachedCapabilityNames
from pml_gateway.adapters.bus.tool_announcer import ToolAnnouncer
from pml_gateway.adapters.bus.watch import BusWatch
from pml_gateway.adapters.mcp_client.configured import configured_servers
from pml_gateway.adapters.postgres.deadline import with_deadline
from pml_gateway.adapters.stub_tools import ECHO, StubTools
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.ports import Caller, CallOrigin
from pml_gateway.settings import GatewaySettings
from services.gateway.tests.support.builders import AT, KEY, READ, SCOPE, WRITE, workflow
from services.gateway.tests.support.fakes import FakeServices, record
from services.gateway.tests.support.harness import FakeServers, settings


async def test_a_name_is_queried_once_and_updated_by_events() -> None:
    bus = MemoryBus()
    peers = FakeServices(bus)
    await peers.start()
    names, known = CachedCapabilityNames(bus), record(workflow(), "fs:look")
    assert await names.name_of(SCOPE, known.capability_id) is None
    peers.names[str(known.capability_id)] = known
    assert await names.name_of(SCOPE, known.capability_id) == "fs:look"
    peers.names.clear()
    assert await names.name_of(SCOPE, known.capability_id) == "fs:look"
    await names.on_capability_changed(
        CapabilityChanged(
            scope=SCOPE,
            event_id=uuid4(),
            capability_id=known.capability_id,
            name="fs:read_notes",
            change="named",
        )
    )
    assert await names.name_of(SCOPE, known.capability_id) == "fs:read_notes"
    await bus.drain(1)


async def test_a_listing_is_published_each_time_and_others_are_retired() -> None:
    bus, gone = MemoryBus(), ToolDefinition(server="old", name="tool")
    peers = FakeServices(bus, catalog=(READ, gone))
    await peers.start()
    announcer = ToolAnnouncer(bus, SCOPE, lambda: AT, lambda _: ())
    for tools in ((READ, WRITE), (READ,), (READ, WRITE)):
        await announcer.publish_list("fs", tools)
    await announcer.retire_others({"fs"})
    stated = [each.message for each in await bus.history(SCOPE, "fs")]
    assert [len(each.tools) for each in stated if isinstance(each, ToolsListed)] == [2, 1, 2]
    (retired,) = [each.message for each in await bus.history(SCOPE, "old")]
    assert isinstance(retired, ToolsListed)
    assert retired.tools == ()
    await bus.drain(1)


async def test_tools_count_as_announced_once_the_catalog_has_them() -> None:
    bus = MemoryBus()
    peers = FakeServices(bus, catalog=(READ,))
    announcer = ToolAnnouncer(bus, SCOPE, lambda: AT, lambda _: ())
    announcing = asyncio.create_task(announcer.announce("fs", (READ, WRITE)))
    await eventually(lambda: bus.history(SCOPE, "fs"))
    await peers.start()
    await asyncio.wait({announcing}, timeout=0.1)  # waits: it goes on
    assert not announcing.done()
    peers.catalog = (READ, WRITE)
    await asyncio.wait_for(announcing, PATIENCE_S)
    await bus.drain(1)


async def test_nats_is_checked_at_most_once_a_second() -> None:
    bus = MemoryBus()
    watch = BusWatch(bus)
    bus.broker.available = False
    with pytest.raises(BusUnavailable, match="NATS"):
        await watch.require()
    assert await watch.check() == "NATS does not answer"
    bus.broker.available = True
    await watch.require()
    bus.broker.available = False
    await watch.require()


ORIGIN = CallOrigin(Caller(SCOPE, "mira"), uuid4())


async def test_calls_go_to_the_pool_that_has_the_server() -> None:
    servers = FakeServers()
    router = ToolRouter([StubTools(), servers])
    assert (await router.call("pml_stub:echo", {"n": 1}, 1, ORIGIN)).result == {"n": 1}
    assert (await router.call("pml_stub:other", {}, 1, ORIGIN)).status == "tool_error"
    assert (await router.call("fs:read", {}, 1, ORIGIN)).status == "ok"
    await router.call("nowhere:tool", {}, 1, ORIGIN)
    assert servers.made == ["fs:read", "nowhere:tool"]
    assert router.find("pml_stub:echo") == ECHO
    assert router.hash_of("fs:read") == READ.definition_hash
    assert router.find("fs:gone") is None
    assert router.hash_of("nowhere:tool") is None
    servers.listed = {"fs": (WRITE,)}
    assert router.find("fs:read") is None


async def test_no_file_means_no_servers(tmp_path: Path) -> None:
    async def nobody(server: str, tools: tuple[ToolDefinition, ...]) -> None:
        raise AssertionError(server)

    for file in (None, tmp_path / "missing.json"):
        async with configured_servers(file, {}, nobody) as (servers, _):
            assert servers.status() == {}


async def test_a_file_that_cannot_be_used_is_named_with_its_fault(tmp_path: Path) -> None:
    async def nobody(server: str, tools: tuple[ToolDefinition, ...]) -> None:
        raise AssertionError(server)

    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"Fs": {}}', encoding="utf-8")
    with pytest.raises(CannotStart, match=r"mcp\.json: not JSON: Expecting ',' delimiter"):
        async with configured_servers(file, {}, nobody):
            pass


async def test_a_store_that_hangs_is_not_waited_for_even_while_it_is_cancelled() -> None:
    cancelled, gate = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            cancelled.set()
            await gate.wait()

    with pytest.raises(StorageUnavailable, match=r"did not answer within 0\.01 s"):
        await with_deadline(stubborn(), 0.01)
    await eventually(cancelled.is_set)
    gate.set()


async def test_a_caller_that_stops_waiting_cancels_the_operation() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    waiting = asyncio.create_task(with_deadline(work(), 30))
    await begun.wait()
    waiting.cancel()
    await asyncio.wait({waiting})
    await eventually(cancelled.is_set)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.2", "example.org"])  # noqa: S104 - refused
def test_an_address_that_others_reach_must_be_allowed_explicitly(host: str) -> None:
    with pytest.raises(ValidationError, match="PML_GATEWAY_ALLOW_REMOTE"):
        settings(gateway_host=host)
    assert settings(gateway_host=host, gateway_allow_remote=True).gateway_host == host


def test_grants_are_signed_with_the_gateways_key(tmp_path: Path) -> None:
    file = tmp_path / "gateway.pem"
    KEY.save(file)
    found = settings(signing_key=file)
    assert found.rules(found.grant_key).key.kid == KEY.kid
    with pytest.raises(CannotStart, match="PML_SIGNING_KEY must name"):
        _ = settings(signing_key=None).grant_key


def test_the_environment_sets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PML_GATEWAY_ALLOWED_HOSTS", "pml.example, other.example")
    monkeypatch.setenv("PML_GATEWAY_POLICY", '{"read_only": "ask"}')
    monkeypatch.setenv("PML_MCP_SERVERS", "/etc/mcp.json")
    monkeypatch.setenv("PML_GATEWAY_POLICY_FILE", "/etc/policy.json")
    found = GatewaySettings()
    assert {"pml.example", "other.example", "127.0.0.1"} <= set(found.names.hosts)
    assert found.gateway_policy.read_only == "ask"
    assert found.gateway_policy_file == Path("/etc/policy.json")
    assert found.mcp_servers == Path("/etc/mcp.json")
