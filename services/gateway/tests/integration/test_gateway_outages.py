"""Outages of NATS or Postgres: reported while they last, and nothing accepted is lost."""

import asyncio
from uuid import UUID

import httpx2
import pytest

from libs.pml_local.tests.support.harness import RunningNats, eventually
from libs.pml_local.tests.support.tcp_proxy import tcp_proxy
from pml_common.storage.schema import open_scoped_schema
from pml_gateway.adapters.postgres.workflows import PostgresWorkflowStore
from services.gateway.tests.integration.gateways import Gateway, gateway, peers
from services.gateway.tests.support.builders import SCOPE

pytestmark = pytest.mark.integration


async def _answer(g: Gateway, code: str = "return 1;") -> httpx2.Response:
    """POST /api/execute; it is answered while what is away stays away."""
    body = {"code": code, "timeout": 0.5}  # the answer waits no longer for the run
    return await g.http.post("/api/execute", json=body)


async def _refusal(g: Gateway, code: str = "return 1;") -> str | None:
    answer = await _answer(g, code)
    if answer.status_code != 503:
        return None
    assert "retry-after" in answer.headers
    return answer.json()["error"]["message"]


async def test_without_nats_nothing_is_accepted_and_what_was_is_not_lost(
    nats_server: RunningNats, postgres_dsn: str
) -> None:
    async with peers(nats_server.url) as p, gateway(nats_server.url, postgres_dsn) as g:
        assert (await g.execute())["status"] == "success"
        hanging = asyncio.create_task(g.execute("hang", timeout=30))
        await eventually(lambda: p.runs[1:])
        await nats_server.kill()
        # For a moment NATS is believed to be there still: what is accepted then is kept.
        accepted = [(await _answer(g)) for _ in range(3)]
        message = await eventually(lambda: _refusal(g))
        assert "NATS" in message
        assert (await g.http.get("/healthz")).status_code == 503
        discovery = await g.http.post("/api/discover", json={"intent": "anything"})
        assert discovery.status_code == 503
        await nats_server.start()
        p.release.set()
        assert (await hanging)["status"] == "success"
        kept = [each.json()["workflow_id"] for each in accepted if each.status_code == 200]
        for workflow_id in kept:
            await g.ends(workflow_id, "success")
        total = (await g.http.get("/api/workflows")).json()["total"]
        assert total == 2 + len(kept)
        assert (await g.execute())["status"] == "success"
        assert (await g.http.get("/healthz")).status_code == 200


async def test_an_approval_given_while_nats_is_away_counts(
    nats_server: RunningNats, postgres_dsn: str
) -> None:
    async with peers(nats_server.url) as p, gateway(nats_server.url, postgres_dsn) as g:
        asked = await g.execute("ask")
        await nats_server.kill()
        answer = await g.decide(asked["workflow_id"], "approve")
        assert answer.json()["status"] == "running"
        assert p.runs == []
        await nats_server.start()
        await g.ends(asked["workflow_id"], "success")
        assert len(p.runs) == 1


async def test_without_postgres_what_runs_at_once_is_accepted_and_finished_once_it_is_back(
    nats_url: str, postgres_dsn: str
) -> None:
    async with (
        tcp_proxy(postgres_dsn) as link,
        peers(nats_url) as p,
        gateway(nats_url, link.dsn) as g,
    ):
        hanging = asyncio.create_task(g.execute("hang", timeout=30))
        await eventually(lambda: p.runs)
        await link.cut()
        assert "Postgres" in str(await _refusal(g, "ask"))
        begun = asyncio.create_task(g.execute("hang", timeout=60))
        await eventually(lambda: p.runs[1:])
        assert (await g.http.get("/api/workflows")).status_code == 503
        assert "Postgres" in (await g.http.get("/healthz")).json()["checks"]["postgres"]
        p.release.set()
        await link.listen()
        assert (await hanging)["status"] == "success"
        ran = await begun
        assert ran["status"] == "success"
        async with open_scoped_schema(postgres_dsn, "gateway", "pml_gateway") as pool:
            rows = PostgresWorkflowStore(pool)
            await eventually(lambda: _succeeded(rows, UUID(ran["workflow_id"])))
        assert (await g.execute())["status"] == "success"


async def _succeeded(rows: PostgresWorkflowStore, workflow_id: UUID) -> bool:
    found = await rows.get(SCOPE, workflow_id)
    return found is not None and found.state == "succeeded"
