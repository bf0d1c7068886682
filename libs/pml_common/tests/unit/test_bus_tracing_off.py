"""Propagation of traces in a process that exports no spans."""

from opentelemetry import trace

from pml_common.bus import tracing
from pml_common.bus.codec import CAUSATION, CORRELATION
from pml_common.contracts.catalog import CALL_TOOL
from pml_common.telemetry.spans import in_a_trace, spanning

TRACE = "0af7651916cd43dd8448eb211c80319c"
SENT = {
    "traceparent": f"00-{TRACE}-b7ad6b7169203331-01",
    CORRELATION: "what began it",
    CAUSATION: "what asked",
}


def test_a_received_trace_is_propagated() -> None:
    with (
        tracing.receiving("serve", "call-tool", "pml.qry", SENT),
        spanning(trace.get_tracer(__name__), "call tool", {}),
        tracing.requesting(CALL_TOOL) as headers,
    ):
        assert in_a_trace()
    assert headers["traceparent"].split("-")[1] == TRACE
    assert (headers[CORRELATION], headers[CAUSATION]) == ("what began it", "what asked")
