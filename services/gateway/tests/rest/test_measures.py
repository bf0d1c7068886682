"""Measurements of requests, workflows and approvals in the gateway."""

import asyncio
from collections.abc import Generator

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from libs.pml_common.tests.support.measured import Measured, measured
from libs.pml_local.tests.support.harness import eventually
from pml_common.telemetry import metrics
from pml_gateway.entrypoints.http.measures import Measured as Measuring
from services.gateway.tests.support.harness import Worlds

pytestmark = pytest.mark.integration

REQUESTS = f"{metrics.HTTP_DURATION.prometheus_name}_count"
WORKFLOWS = f"{metrics.WORKFLOWS.prometheus_name}_count"
APPROVALS = f"{metrics.APPROVALS.prometheus_name}_count"


@pytest.fixture
def m() -> Generator[Measured]:
    with measured() as one:
        yield one


async def test_requests_are_measured_by_route_and_never_by_path(m: Measured, world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("return 1;")
        await w.http.get(f"/api/workflows/{asked['workflow_id']}")
        await w.http.get("/api/nothing/of/the/kind")
        await w.http.request("BREW", "/api/execute")
    executed = {"http_route": "/api/execute", "http_request_method": "POST"}
    assert m.value(REQUESTS, http_response_status_code="200", **executed) == 1
    assert m.value(REQUESTS, http_route="/api/workflows/{workflow_id}") == 1
    assert m.value(REQUESTS, http_route="other", http_response_status_code="404") == 1
    assert m.value(REQUESTS, http_request_method="_OTHER", http_response_status_code="405") == 1
    routes = {has["http_route"] for name, has, _ in m.samples() if name == REQUESTS}
    assert not any(asked["workflow_id"] in route for route in routes)


async def test_a_mounted_route_has_its_path_and_a_failed_request_a_status(m: Measured) -> None:
    class Endpoint:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] == "DELETE":
                raise LookupError("a bug")
            await Response("fine")(scope, receive, send)

    app = Measuring(Starlette(routes=[Route("/mcp", endpoint=Endpoint())]))
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        await client.post("/mcp")
        await client.post("/mcp/more")
        await client.delete("/mcp")
    assert m.value(REQUESTS, http_route="/mcp", http_response_status_code="200") == 1
    assert m.value(REQUESTS, http_route="/mcp", http_response_status_code="500") == 1
    assert m.value(REQUESTS, http_route="other", http_response_status_code="404") == 1


async def test_the_end_of_a_workflow_is_measured_with_its_outcome(
    m: Measured, world: Worlds
) -> None:
    async with world() as w:
        await w.execute("return 1;")
        assert await eventually(lambda: m.value(WORKFLOWS, pml_outcome="success") == 1)
        await w.execute("deny")
        assert await eventually(lambda: m.value(WORKFLOWS, pml_outcome="denied") == 1)


async def test_a_decision_is_measured_once(m: Measured, world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        assert m.value(APPROVALS) == 0
        await w.decide(asked["workflow_id"], "approve", wait=True)
        assert m.value(APPROVALS, pml_decision="approved") == 1
        refused = await w.execute("ask", args={"other": 1})
        await w.decide(refused["workflow_id"], "deny")
        withdrawn = await w.execute("ask", args={"another": 1})
        await w.http.post(f"/api/workflows/{withdrawn['workflow_id']}/cancel", json={})
        assert m.value(APPROVALS, pml_decision="denied") == 1
        assert m.value(APPROVALS, pml_decision="withdrawn") == 1
        assert m.value(APPROVALS) == 3


async def test_a_wait_for_a_turn_is_measured(m: Measured, world: Worlds) -> None:
    async with world(gateway_max_in_flight=1, gateway_max_waiting_per_scope=1) as w:
        first = asyncio.create_task(w.execute("hang"))
        await eventually(lambda: len(w.peers.runs) == 1)
        second = asyncio.create_task(w.execute("hang", args={"n": 2}))
        await eventually(lambda: w.parts.admission.waiting == 1)
        assert m.value(metrics.EXECUTIONS_WAITING.prometheus_name) == 1
        assert w.parts.admission.in_flight == 1
        assert (await w.http.post("/api/execute", json={"code": "hang"})).status_code == 429
        assert m.value(metrics.EXECUTIONS_REFUSED.samples[0]) == 1
        w.peers.release.set()
        await asyncio.gather(first, second)
    waited = f"{metrics.EXECUTIONS_WAIT.prometheus_name}_count"
    assert m.value(waited, pml_outcome="admitted") == 1
    assert m.value(metrics.EXECUTIONS_WAITING.prometheus_name) == 0
