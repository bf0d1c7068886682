"""The spans of a workflow, from the OTLP backend that there is: Jaeger, or Phoenix in its place."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx2

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.telemetry.vocabulary import CONSUMER_GROUP
from pml_common.telemetry.vocabulary import WORKFLOW_ID as WORKFLOW
from tests.e2e.collector import Span

LIMIT = 1000


async def spans_of(url: str, workflow: str) -> list[Span]:
    """All spans of the traces that name the workflow; none while none has arrived."""
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE_S) as http:
        known = await http.get("/api/services")  # of Jaeger alone
        kind = known.headers.get("content-type", "")
        if known.is_success and kind.startswith("application/json"):
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
    if answer.status_code == 404:  # no span has arrived
        return []
    answer.raise_for_status()
    spans = [_phoenix_span(span) for span in answer.json()["data"]]
    traces = {span.trace_id for span in spans if span.attributes.get(WORKFLOW) == workflow}
    return with_services([span for span in spans if span.trace_id in traces])


def _phoenix_span(span: Mapping[str, Any]) -> Span:
    given = {one["key"]: _value(one["value"]) for one in span.get("attributes") or ()}
    return Span(
        service="",
        name=span["name"],
        trace_id=span["trace_id"],
        span_id=span["span_id"],
        parent_id=span.get("parent_span_id") or "",
        attributes=given,
    )


def _value(value: Mapping[str, object]) -> str:
    return str(next((one for one in value.values() if one is not None), ""))


def with_services(spans: Sequence[Span]) -> list[Span]:
    """Name the service of each span of one trace, of which Phoenix keeps no resource: whoever
    handles a message is named by its durable consumer, whoever serves a query by the query's owner;
    what begins inside is the same service, and the root is the gateway's."""
    by_id = {span.span_id: span for span in spans}

    def service(span: Span) -> str:
        attributes = span.attributes
        if durable := attributes.get(CONSUMER_GROUP):
            return f"pml-{durable.partition('-on-')[0]}"
        if attributes.get("messaging.operation.name") == "serve":
            return f"pml-{attributes['messaging.destination.name'].split('.')[2]}"
        parent = by_id.get(span.parent_id)
        if parent is None:
            return "" if span.parent_id else "pml-gateway"
        return service(parent)

    return [replace(span, service=service(span)) for span in spans]
