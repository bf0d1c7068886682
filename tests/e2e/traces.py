"""A workflow's trace, as it is expected of any receiver of spans."""

from collections.abc import Sequence

from tests.e2e.collector import Span

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


def is_whole(spans: Sequence[Span]) -> bool:
    """Whether the root and an edge between all services that meet have arrived."""
    return edges(spans) >= EDGES and any(not span.parent_id for span in spans)


def edges(spans: Sequence[Span]) -> set[tuple[str, str]]:
    """Pairs of services of which one's span is the parent of the other's."""
    by_id = {span.span_id: span for span in spans}
    return {
        (by_id[span.parent_id].service, span.service)
        for span in spans
        if span.parent_id in by_id and by_id[span.parent_id].service != span.service
    }


def check_trace(spans: Sequence[Span], tool: str) -> None:
    """Assert one trace of all services that begins at the gateway, with the call of a tool that the
    sandboxed program made."""
    assert len({span.trace_id for span in spans}) == 1
    assert {span.service for span in spans} == SERVICES
    by_id = {span.span_id: span for span in spans}
    calls = [span for span in spans if span.attributes.get("pml.tool.id") == tool]
    assert any(call.service == "pml-gateway" for call in calls)
    callers = {by_id[call.parent_id].service for call in calls if call.parent_id in by_id}
    assert callers & {"pml-executor", "pml-gateway"}, callers
    roots = [span for span in spans if not span.parent_id]
    assert [root.service for root in roots] == ["pml-gateway"]
