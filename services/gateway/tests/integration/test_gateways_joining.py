"""Equal calls to two gateways on real NATS and Postgres."""

import asyncio

import pytest

from services.gateway.tests.integration.gateways import gateway, peers

pytestmark = pytest.mark.integration


async def test_equal_calls_to_two_gateways_are_one_workflow(
    nats_url: str, postgres_dsn: str
) -> None:
    async with (
        peers(nats_url) as others,
        gateway(nats_url, postgres_dsn) as one,
        gateway(nats_url, postgres_dsn) as other,
    ):
        calls = (at.execute("ask") for at in (one, other, one, other))
        answers = await asyncio.gather(*calls)
        assert len({answer["workflow_id"] for answer in answers}) == 1
        assert sum("joined" in answer for answer in answers) == 3
        waiting = await other.http.get("/api/approvals")
        assert waiting.json()["total"] == 1
        await one.decide(answers[0]["workflow_id"], "approve", wait=True)
        assert (await other.execute("ask"))["status"] == "success"
        assert len(others.runs) == 1
