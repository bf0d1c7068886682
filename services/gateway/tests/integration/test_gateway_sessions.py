"""Sessions of MCP clients over two gateways on real NATS and Postgres."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts import catalog
from pml_common.contracts.executor import CancelRun
from pml_common.contracts.registry import CapabilityChanged
from pml_gateway.adapters.stub_tools import ECHO
from pml_gateway.domain.api.client_session import event_id
from services.gateway.tests.integration.gateways import Gateway, gateway, peers
from services.gateway.tests.integration.mcp.legacy_client import (
    Json,
    begin,
    call,
    in_session,
    open_get,
    open_post,
    post,
)
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.fakes import FakeServices

pytestmark = pytest.mark.integration

Two = tuple[Gateway, Gateway, FakeServices]


@pytest.fixture
async def two(nats_url: str, postgres_dsn: str) -> AsyncGenerator[Two]:
    """Two gateways and the other services."""
    async with (
        peers(nats_url) as others,
        gateway(nats_url, postgres_dsn, gateway_max_sessions=2) as one,
        gateway(nats_url, postgres_dsn, gateway_max_sessions=2) as other,
    ):
        yield one, other, others


def _url(at: Gateway) -> str:
    return f"http://127.0.0.1:{at.settings.gateway_port}/mcp"


async def test_a_session_lives_in_both_gateways(two: Two) -> None:
    one, other, others = two
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session, _ = [await begin(_url(one), http) for _ in range(2)]
        refused = await post(_url(other), http, "0" * 32, {"id": 1, "method": "tools/list"})
        assert refused.status_code == 404
        async with (
            open_get(_url(one), http, session) as here,
            open_get(_url(other), http, session) as there,
        ):
            changed = CapabilityChanged(
                event_id=uuid4(),
                scope=SCOPE,
                capability_id=uuid4(),
                name="fs:look",
                change="learned",
                health="failing",
            )
            at = event_id(one.bus.now())
            await others.bus.publish(changed)
            for stream in (here, there):
                told = await stream.until(at)
                assert told["method"] == "notifications/tools/list_changed"
            ended = await http.delete(_url(other), headers=in_session(session))
            assert ended.status_code == 204
            await asyncio.gather(here.rest(), there.rest())
        refused = await post(_url(one), http, session, {"id": 1, "method": "tools/list"})
        assert refused.status_code == 404


async def test_a_client_hears_of_a_policy_that_lists_other_tools(
    nats_url: str, postgres_dsn: str, tmp_path: Path
) -> None:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps({"rules": []}))
    async with (
        asyncio.timeout(PATIENCE_S),
        gateway(nats_url, postgres_dsn, gateway_policy_file=file) as one,
        httpx2.AsyncClient() as http,
    ):

        async def listed() -> str:
            return (await post(_url(one), http, session, {"id": 1, "method": "tools/list"})).text

        session = await begin(_url(one), http)
        async with open_get(_url(one), http, session) as stream:
            assert ECHO.name in await listed()
            at = event_id(one.bus.now())
            file.write_text(json.dumps({"rules": [{"pattern": ECHO.tool_id, "verdict": "deny"}]}))
            told = await stream.until(at)
            assert told["method"] == "notifications/tools/list_changed"
            assert ECHO.name not in await listed()


async def test_a_call_is_cancelled_through_the_other_gateway(two: Two) -> None:
    one, other, others = two
    cancelled: list[CancelRun] = []

    async def hear(command: CancelRun) -> None:
        cancelled.append(command)

    await others.bus.listen(catalog.CANCEL_RUN, hear)
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session = await begin(_url(one), http)
        running = call(7, {"code": "return 'hang';"})
        async with open_post(_url(one), http, session, running) as stream:
            await eventually(lambda: others.runs)
            cancel: Json = {"method": "notifications/cancelled", "params": {"requestId": 7}}
            assert (await post(_url(other), http, session, cancel)).status_code == 202
            answer = await stream.next()
        assert answer["error"] == {"code": -32800, "message": "the client cancelled the call"}
        await eventually(lambda: cancelled)
        assert cancelled[0].workflow_id == others.runs[0].workflow_id
