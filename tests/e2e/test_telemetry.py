"""One workflow is one OpenTelemetry trace across all five services and the sandbox; every service
has its metrics."""

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from libs.pml_local.tests.support.harness import eventually
from pml_common.telemetry.metrics import METRICS
from tests.e2e.agents import agent, answer_of
from tests.e2e.collector import Span
from tests.e2e.harness import StackHarness
from tests.e2e.traces import check_trace, is_whole

pytestmark = pytest.mark.e2e

IN_SANDBOX = {("run", "lease sandbox"), ("run", "run program"), ("run program", "call tool")}
"""Spans of the executor, each inside the one before it."""

MEASURED = {
    "gateway": {"pml.workflow.duration", "pml.tool.call.duration", "http.server.request.duration"},
    "analyzer": {"pml.bus.query.duration"},
    "executor": {"pml.run.duration", "pml.sandbox.processes", "pml.sandbox.lease.duration"},
    "learner": {"pml.learner.runs", "pml.learner.lag", "pml.db.pool.connections"},
    "registry": {"pml.bus.messages", "pml.db.pool.limit"},
}


def _nested(spans: list[Span], service: str) -> set[tuple[str, str]]:
    """The names of a service's spans, each with that of the span around it."""
    names = {span.span_id: span.name for span in spans if span.service == service}
    return {
        (names[span.parent_id], span.name)
        for span in spans
        if span.service == service and span.parent_id in names
    }


async def test_one_workflow_is_one_trace_with_all_services_and_the_tool_call(
    harness: StackHarness,
) -> None:
    answer = await harness.execute('return await mcp.counting.peek({ path: "/nowhere" });')
    assert answer["status"] == "success", answer

    def whole_trace() -> list[Span] | None:
        spans = harness.telemetry.of_workflow(str(answer["workflow_id"]))
        whole = is_whole(spans) and _nested(spans, "pml-executor") >= IN_SANDBOX
        return spans if whole else None

    spans = await eventually(whole_trace)
    check_trace(spans, "counting:peek")
    run = next(span for span in spans if span.name == "run")
    assert run.attributes["pml.outcome"] == "success"
    assert "decide" in {span.name for span in spans if span.service == "pml-gateway"}
    roots = [span for span in spans if not span.parent_id]
    assert [(root.service, root.name) for root in roots] == [("pml-gateway", "POST /api/execute")]


async def test_a_call_over_mcp_is_one_trace_from_the_clients_request_to_the_tool(
    harness: StackHarness,
) -> None:
    async with agent(harness) as client:
        answer = answer_of(
            await client.call_tool(
                "pml_execute", {"code": 'return await mcp.counting.peek({ path: "/mcp" });'}
            )
        )
    assert answer["status"] == "success", answer

    def traced() -> list[Span] | None:
        spans = harness.telemetry.of_workflow(str(answer["workflowId"]))
        names = {span.name for span in spans}
        return spans if {"tools/call", "execute", "call tool"} <= names else None

    spans = await eventually(traced)
    (request,) = [span for span in spans if span.name == "tools/call"]
    assert request.attributes["gen_ai.tool.name"] == "pml_execute"
    assert len({span.trace_id for span in spans}) == 1


async def test_every_service_has_its_metrics(harness: StackHarness) -> None:
    assert (await harness.execute("return 1;"))["status"] == "success"
    names = {sample: metric.name for metric in METRICS for sample in metric.samples}
    async with httpx2.AsyncClient() as client:
        for service, expected in MEASURED.items():
            url = harness.stack.parts[service].metrics
            assert url is not None

            async def found(url: str = url, expected: set[str] = expected) -> set[str] | None:
                text = (await client.get(url)).text
                families = text_string_to_metric_families(text)
                measured = {names[s.name] for f in families for s in f.samples if s.value}
                return measured if measured >= expected else None

            await eventually(found)
