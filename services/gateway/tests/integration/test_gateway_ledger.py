"""Tool calls and workflows across gateway processes that are killed."""

import asyncio
from collections import Counter
from pathlib import Path
from uuid import UUID, uuid4

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from libs.pml_local.tests.support.tcp_proxy import tcp_proxy
from pml_common.bus.errors import QueryFailed
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import catalog
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.storage.schema import open_scoped_schema
from pml_gateway.adapters.postgres.ledger import PostgresCallLedger
from pml_gateway.adapters.postgres.liveness_lock import liveness_lock
from pml_gateway.domain.tool_calls.ledger import LOST
from pml_local.ports import free_port
from services.gateway.tests.integration.gateways import (
    gateway_process,
    listed_tools,
    peers,
    process_environment,
    servers_file,
    stored_call,
)
from services.gateway.tests.integration.mcp.harness import ServerHarness

pytestmark = pytest.mark.integration


async def _ask(bus: NatsBus, asked: CallTool) -> ToolOutcome:
    return await bus.request(catalog.CALL_TOOL, asked, timeout=PATIENCE_S)


async def _asked_again(bus: NatsBus, asked: CallTool) -> ToolOutcome | None:
    try:
        return await _ask(bus, asked)
    except QueryFailed as failure:
        return None if failure.code == "unavailable" else pytest.fail(str(failure))


async def test_calls_of_a_gateway_that_was_killed_are_answered_honestly_by_the_next(
    nats_url: str, postgres_dsn: str, tmp_path: Path
) -> None:
    box, port = ServerHarness(tmp_path), free_port()
    servers = {"box": box.stdio().model_dump(include={"command", "args", "trust"})}
    file = str(servers_file(tmp_path, servers))
    environment = process_environment(nats_url, postgres_dsn, port, tmp_path, PML_MCP_SERVERS=file)
    bus = await NatsBus.connect(nats_url, service="executor", identity=all_services_identity())
    async with gateway_process(environment) as first:
        tools = await eventually(lambda: listed_tools(bus))
        done = await stored_call(postgres_dsn, tools["count"], {"key": "once"})
        assert (await _ask(bus, done)).result == "counted"
        lost = await stored_call(postgres_dsn, tools["slow"], {"seconds": 60})
        lost = lost.model_copy(update={"timeout_s": 60.0})
        asking = asyncio.create_task(_asked_again(bus, lost))
        await eventually(lambda: "slow began" in box.lines())
        first.kill()
        asking.cancel()
        await asyncio.wait({asking})
    async with gateway_process(environment) as second:
        assert (await _ask(bus, done)).result == "counted"
        assert await eventually(lambda: _asked_again(bus, lost)) == LOST
        assert Counter(box.lines())["once"] == 1
        assert Counter(box.lines())["slow began"] == 1
        second.terminate()
        assert await asyncio.wait_for(second.wait(), PATIENCE_S) == 0
    await bus.drain()


async def test_a_workflow_outlives_the_gateway_that_was_killed_after_accepting_it(
    nats_url: str, postgres_dsn: str, tmp_path: Path
) -> None:
    environment = process_environment(nats_url, postgres_dsn, free_port(), tmp_path)
    url = f"http://127.0.0.1:{environment['PML_GATEWAY_PORT']}"
    async with peers(nats_url) as p, httpx2.AsyncClient(base_url=url, timeout=PATIENCE_S) as http:
        async with gateway_process(environment) as first:
            body = {"code": "hang", "timeout": 0.1}
            answer = (await http.post("/api/execute", json=body)).json()
            assert answer["status"] == "running"
            first.kill()
            await first.wait()
        p.release.set()
        async with gateway_process(environment):

            async def ended() -> bool:
                found = await http.get(f"/api/workflows/{answer['workflow_id']}")
                return found.json()["status"] == "success"

            await eventually(ended)


async def test_a_process_is_seen_alive_while_its_session_lasts(postgres_dsn: str) -> None:
    instance = uuid4()
    async with (
        tcp_proxy(postgres_dsn) as link,
        open_scoped_schema(postgres_dsn, "gateway", "pml_gateway") as pool,
    ):
        ledger = PostgresCallLedger(pool)
        assert not await ledger.lives(instance)
        async with liveness_lock(link.dsn, instance):
            assert await ledger.lives(instance)
            assert not await ledger.lives(uuid4())
            await link.cut()
            await eventually(lambda: _is_gone(ledger, instance))
            await link.listen()
            await eventually(lambda: ledger.lives(instance))
        await eventually(lambda: _is_gone(ledger, instance))


async def _is_gone(ledger: PostgresCallLedger, instance: UUID) -> bool:
    return not await ledger.lives(instance)
