"""Cached results on real NATS and Postgres, with several gateways."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_gateway.domain.api.api import ExecuteRequest
from services.gateway.tests.integration.gateways import Gateway, gateway, peers
from services.gateway.tests.support.builders import workflow
from services.gateway.tests.support.fakes import FakeServices, record
from services.gateway.tests.support.harness import Json

pytestmark = pytest.mark.integration


@pytest.fixture
async def registry(nats_url: str) -> AsyncGenerator[FakeServices]:
    """Run the other services with capability `fs:look`, which echoes."""
    async with peers(nats_url) as p:
        new = workflow(ExecuteRequest(code="return 'known';"))
        p.names["fs:look"] = record(new, "fs:look")
        yield p


async def choose(g: Gateway, cache: Json) -> None:
    answer = await g.http.patch("/api/capabilities/fs:look", json={"cache": cache})
    assert answer.status_code == 200, answer.text


async def look(g: Gateway, text: str = "hello") -> Json:
    body = {"capability": "fs:look", "args": {"text": text}}
    answer = await g.http.post("/api/execute", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("policy", ["memoize", "persistent"])
async def test_what_one_gateway_kept_every_other_tells_and_the_next_one_too(
    nats_url: str, postgres_dsn: str, registry: FakeServices, policy: str
) -> None:
    async with gateway(nats_url, postgres_dsn) as a, gateway(nats_url, postgres_dsn) as b:
        await choose(a, {"policy": policy})
        first = await look(a)
        assert first["status"] == "success"
        for g in (a, b):
            assert await look(g) == {**first, "cached": True}
        assert "cached" not in await look(b, "another")
    async with gateway(nats_url, postgres_dsn) as g:
        assert await look(g) == {**first, "cached": True}
        assert len(registry.runs) == 2
        await choose(g, {"policy": "none"})
        assert "cached" not in await look(g)
        await choose(g, {"policy": policy})
        assert "cached" not in await look(g)


async def test_a_memoized_result_is_over_by_the_clock(
    nats_url: str, postgres_dsn: str, registry: FakeServices
) -> None:
    async with gateway(nats_url, postgres_dsn) as g:
        await choose(g, {"policy": "memoize", "ttl_s": 1})
        first = await look(g)

        async def ran_again() -> Json | None:
            answer = await look(g)
            return answer if answer["workflow_id"] != first["workflow_id"] else None

        again = await eventually(ran_again)
        assert "cached" not in again
        assert len(registry.runs) == 2


async def test_a_result_over_what_a_message_takes_is_told_whole(
    nats_url: str, postgres_dsn: str, registry: FakeServices
) -> None:
    async with gateway(nats_url, postgres_dsn, gateway_max_body_bytes=4_000_000) as g:
        await choose(g, {"policy": "memoize"})
        text = "x" * 2_000_000
        first = await look(g, text)
        again = await look(g, text)
        assert first["status"] == "success"
        assert again == {**first, "cached": True}
        assert text in str(again["result"])


async def test_many_calls_at_once_are_all_answered(
    nats_url: str, postgres_dsn: str, registry: FakeServices
) -> None:
    async with gateway(nats_url, postgres_dsn) as g:
        await choose(g, {"policy": "persistent"})
        answers = await asyncio.gather(*(look(g) for _ in range(8)))
        assert {answer["status"] for answer in answers} == {"success"}
        assert (await look(g))["cached"]
