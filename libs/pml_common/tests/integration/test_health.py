"""Health checks over HTTP."""

import asyncio
import os

import httpx2
import pytest
from starlette.applications import Starlette

from pml_common.health import fixed_detail, report, serve_health
from pml_common.http_server import serve_http
from pml_common.telemetry.setup import metering
from pml_local.ports import free_port

pytestmark = pytest.mark.integration


async def _fine() -> str | None:
    return None


async def _gone() -> str | None:
    return "NATS does not answer"


async def _stuck() -> str | None:
    await asyncio.Event().wait()
    return None


async def test_health_is_ok_if_every_check_succeeds() -> None:
    assert await report({"nats": _fine}) == (
        200,
        {"status": "ok", "pid": os.getpid(), "checks": {"nats": "ok"}},
    )


async def test_a_problem_is_named_and_a_stuck_check_does_not_hang() -> None:
    status, body = await report(
        {"nats": _gone, "sandbox": _stuck, "pg": _fine}, timeout=0.05
    )  # waits: for _stuck
    assert status == 503
    assert body == {
        "status": "degraded",
        "pid": os.getpid(),
        "checks": {
            "nats": "NATS does not answer",
            "sandbox": "no answer within 0.05 s",
            "pg": "ok",
        },
    }


async def test_details_of_healthy_dependencies_are_reported() -> None:
    assert await report({"nats": _fine, "walls": fixed_detail("bubblewrap")}) == (
        200,
        {"status": "ok", "pid": os.getpid(), "checks": {"nats": "ok", "walls": "bubblewrap"}},
    )


async def test_a_process_with_a_missing_dependency_lives_but_is_not_ready() -> None:
    port = free_port()
    async with serve_health(port, {"nats": _gone}), httpx2.AsyncClient() as client:
        assert (await client.get(f"http://127.0.0.1:{port}/livez")).status_code == 200
        assert (await client.get(f"http://127.0.0.1:{port}/healthz")).status_code == 503


async def test_other_addresses_than_loopback_can_be_served() -> None:
    port = free_port()
    async with serve_health(port, {}, host="127.0.0.2"), httpx2.AsyncClient() as client:
        assert (await client.get(f"http://127.0.0.2:{port}/readyz")).status_code == 200
        with pytest.raises(httpx2.ConnectError):
            await client.get(f"http://127.0.0.1:{port}/readyz")


async def test_metrics_are_served_where_they_are_collected() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/metrics"
    with metering("tested", None, scraped=True) as scrape:
        async with serve_health(port, {}, scrape=scrape), httpx2.AsyncClient() as client:
            answer = await client.get(url)
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/plain; version=")
    async with serve_health(port, {}), httpx2.AsyncClient() as client:
        assert (await client.get(url)).status_code == 404


async def test_a_taken_port_is_an_error_at_once() -> None:
    port = free_port()
    async with serve_health(port, {}):
        with pytest.raises(OSError, match=str(port)):
            async with serve_http(Starlette(), "127.0.0.1", port):
                pass
