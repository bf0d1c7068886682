"""The spans of a workflow, from the OTLP backend that there is: Jaeger, or Phoenix in its place."""

from collections.abc import Mapping
from typing import Any, cast

import httpx2

from tests.e2e.collector import Span

WORKFLOW = "pml.workflow.id"
LIMIT = 1000


async def spans_of(url: str, workflow: str) -> list[Span]:
    """All spans of the traces that name the workflow; none while none has arrived."""
    async with httpx2.AsyncClient(base_url=url, timeout=30.0) as http:
        known = await http.get("/api/services")  # of Jaeger alone
        if known.is_success and known.headers.get("content-type", "").startswith("application/json"):
            return await _from_jaeger(http, workflow)
        return await _from_phoenix(http, workflow)


async def _from_jaeger(http: httpx2.AsyncClient, workflow: str) -> list[Span]:
    query = {"service": "pml-gateway", "tags": f'{{"{WORKFLOW}":"{workflow}"}}', "limit": "20"}
    answer = await http.get("/api/traces", params=query)
    answer.raise_for_status()
    return [
        Span(
            service=trace["processes"][span["processID"]]["serviceName"],
            name=span["operationName"],
            trace_id=span["traceID"],
            span_id=span["spanID"],
            parent_id=next(
                (one["spanID"] for one in span["references"] if one["refType"] == "CHILD_OF"), ""
            ),
            attributes={tag["key"]: str(tag["value"]) for tag in span["tags"]},
        )
        for trace in answer.json()["data"]
        for span in trace["spans"]
    ]


async def _from_phoenix(http: httpx2.AsyncClient, workflow: str) -> list[Span]:
    answer = await http.get("/v1/projects/default/spans/otlpv1", params={"limit": LIMIT})
    answer.raise_for_status()
    spans = [_phoenix_span(span) for span in answer.json()["data"]]
    traces = {span.trace_id for span in spans if span.attributes.get(WORKFLOW) == workflow}
    return [span for span in spans if span.trace_id in traces]


def _phoenix_span(span: Mapping[str, Any]) -> Span:
    given = {one["key"]: _value(one["value"]) for one in span.get("attributes") or ()}
    return Span(
        service=given.get("service.name", ""),
        name=span["name"],
        trace_id=span["trace_id"],
        span_id=span["span_id"],
        parent_id=span.get("parent_span_id") or "",
        attributes=given,
    )


def _value(value: Mapping[str, object]) -> str:
    return str(next((one for one in value.values() if one is not None), ""))
