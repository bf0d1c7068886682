"""The gateway end to end, on real NATS and Postgres."""

import asyncio
from collections import Counter

import asyncpg
import pytest

from libs.pml_local.tests.support.databases import as_owner
from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.gateway import ToolsListed
from pml_gateway.adapters.std.server import MODULES
from pml_gateway.adapters.stub_tools import ECHO
from services.gateway.tests.integration.gateways import gateway, peers
from services.gateway.tests.support.builders import SCOPE, WRITE

pytestmark = pytest.mark.integration

NASTY = 'NUL \x00 quote " é 😀 \u2028'


async def _rows(dsn: str, table: str) -> int:
    connection = await asyncpg.connect(as_owner(dsn), server_settings={"pml.migrating": "on"})
    try:
        return await connection.fetchval(f"SELECT count(*) FROM gateway.{table}")  # noqa: S608 - ours
    finally:
        await connection.close()


async def test_an_allowed_program_runs_calls_and_answers(nats_url: str, postgres_dsn: str) -> None:
    async with peers(nats_url) as p, gateway(nats_url, postgres_dsn) as g:
        answer = await g.execute(f"return 1; // {NASTY}", args={NASTY: NASTY}, intent=NASTY)
        assert answer["status"] == "success"
        (outcome,) = answer["result"]
        assert (outcome["status"], outcome["result"]) == ("ok", {NASTY: NASTY})
        view = await g.workflow(answer["workflow_id"])
        assert (view["result"], view["intent"]) == (answer["result"], NASTY)
        assert await _rows(postgres_dsn, "tool_call") == 1

        async def all_told() -> bool:
            return await _rows(postgres_dsn, "outbox") == 0

        await eventually(all_told)
        assert len(p.requests) == len(p.runs) == 1


async def test_a_program_that_is_asked_about_runs_when_approved(
    nats_url: str, postgres_dsn: str
) -> None:
    async with peers(nats_url) as p, gateway(nats_url, postgres_dsn) as g:
        asked = await g.execute("ask")
        assert asked["status"] == "approval_required"
        assert (await g.http.get("/api/approvals")).json()["total"] == 1
        assert p.runs == []
        answer = (await g.decide(asked["workflow_id"], "approve", wait=True)).json()
        assert answer["status"] == "success"
        again = await g.decide(asked["workflow_id"], "approve")
        assert again.status_code == 409


async def test_a_program_that_is_denied_never_runs(nats_url: str, postgres_dsn: str) -> None:
    async with peers(nats_url) as p, gateway(nats_url, postgres_dsn) as g:
        asked = await g.execute("ask")
        answer = (await g.decide(asked["workflow_id"], "deny", reason=f"no {NASTY}")).json()
        assert answer["error"]["kind"] == "denied"
        assert p.runs == []


async def test_an_approval_that_nobody_gives_expires(nats_url: str, postgres_dsn: str) -> None:
    async with (
        peers(nats_url) as p,
        gateway(nats_url, postgres_dsn, gateway_approval_ttl_s=0.3) as g,
    ):
        asked = await g.execute("ask")
        view = await g.ends(asked["workflow_id"], "error")
        assert view["approval"]["outcome"] == "expired"
        assert (await g.decide(asked["workflow_id"], "approve")).status_code == 409
        assert p.runs == []


async def test_a_program_that_cannot_be_read_is_answered_at_once(
    nats_url: str, postgres_dsn: str
) -> None:
    async with peers(nats_url), gateway(nats_url, postgres_dsn) as g:
        answer = await g.execute("syntax")
        assert (answer["error"]["line"], answer["error"]["column"]) == (2, 9)


async def test_one_key_at_two_gateways_at_once_runs_once(nats_url: str, postgres_dsn: str) -> None:
    async with (
        peers(nats_url) as p,
        gateway(nats_url, postgres_dsn) as a,
        gateway(nats_url, postgres_dsn) as b,
    ):
        answers = await asyncio.gather(
            *(g.execute("return 1;", idempotency_key="k") for g in (a, b) * 5)
        )
        assert all(answer == answers[0] for answer in answers)
        assert answers[0]["status"] == "success"
        assert len(p.runs) == 1
        other = {"code": "return 2;", "idempotency_key": "k"}
        assert (await b.http.post("/api/execute", json=other)).status_code == 409


async def test_whichever_gateway_was_asked_answers(nats_url: str, postgres_dsn: str) -> None:
    async with (
        peers(nats_url) as p,
        gateway(nats_url, postgres_dsn) as a,
        gateway(nats_url, postgres_dsn) as b,
    ):
        answers = await asyncio.gather(
            *(g.execute(f"return {n};") for n, g in enumerate((a, b) * 10))
        )
        assert Counter(answer["status"] for answer in answers) == {"success": 20}
        assert len({answer["workflow_id"] for answer in answers}) == len(p.runs) == 20
        asked = await a.execute("ask")
        done = (await b.decide(asked["workflow_id"], "approve", wait=True)).json()
        assert done["status"] == "success"


async def test_the_bus_hears_which_tools_there_are(nats_url: str, postgres_dsn: str) -> None:
    async with peers(nats_url) as p:
        p.catalog = (WRITE,)
        async with gateway(nats_url, postgres_dsn) as g:

            async def heard() -> bool:
                stated = [
                    each.message
                    for server in ("pml_stub", "fs")
                    for each in await g.bus.history(SCOPE, server)
                ]
                found = {m.server: len(m.tools) for m in stated if isinstance(m, ToolsListed)}
                return found == {"pml_stub": 1, "fs": 0}

            await eventually(heard)
            tools = (await g.http.get("/api/tools")).json()["tools"]
            names = {each["name"] for each in tools if each["server"] not in MODULES}
            assert names == {ECHO.name}


async def test_a_gateway_that_stops_leaves_its_workflows_to_the_next(
    nats_url: str, postgres_dsn: str
) -> None:
    async with peers(nats_url) as p:
        async with gateway(nats_url, postgres_dsn) as g:
            caller = asyncio.create_task(g.execute("hang", idempotency_key="k"))
            await eventually(lambda: p.runs)
            asked = await g.execute("ask")
        answer = await caller
        assert answer["status"] == "running"
        p.release.set()
        async with gateway(nats_url, postgres_dsn) as g:
            await g.ends(answer["workflow_id"], "success")
            done = await g.decide(asked["workflow_id"], "approve", wait=True)
            assert done.json()["status"] == "success"
            assert len({run.command_id for run in p.runs}) == 2
