"""One workflow is one OpenTelemetry trace across all five services."""

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.collector import Span
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

SERVICES = {f"pml-{name}" for name in ("gateway", "analyzer", "executor", "learner", "registry")}
EDGES = {
    ("pml-gateway", "pml-analyzer"),
    ("pml-analyzer", "pml-gateway"),
    ("pml-analyzer", "pml-registry"),
    ("pml-gateway", "pml-executor"),
    ("pml-executor", "pml-gateway"),
    ("pml-executor", "pml-learner"),
    ("pml-learner", "pml-registry"),
}


def _edges(spans: list[Span]) -> set[tuple[str, str]]:
    by_id = {span.span_id: span for span in spans}
    return {
        (by_id[span.parent_id].service, span.service)
        for span in spans
        if span.parent_id in by_id and by_id[span.parent_id].service != span.service
    }


async def test_one_workflow_is_one_trace_with_all_services_and_the_tool_call(
    harness: StackHarness,
) -> None:
    answer = await harness.execute('return await mcp.counting.peek({ path: "/nowhere" });')
    assert answer["status"] == "success", answer

    def whole_trace() -> list[Span] | None:
        spans = harness.telemetry.of_workflow(str(answer["workflow_id"]))
        whole = _edges(spans) >= EDGES and any(not span.parent_id for span in spans)
        return spans if whole else None

    spans = await eventually(whole_trace, within=60.0)
    assert len({span.trace_id for span in spans}) == 1
    assert {span.service for span in spans} == SERVICES
    calls = [span for span in spans if span.attributes.get("pml.tool.id") == "counting:peek"]
    assert any(call.service == "pml-gateway" for call in calls)
    roots = [span for span in spans if not span.parent_id]
    assert [root.service for root in roots] == ["pml-gateway"]
