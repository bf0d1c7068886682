"""The services that took part in a trace, as the stack's trace backend has it."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import httpx2

TIMEOUT_S = 10.0
_NOT_FOUND = 404


class TraceBackend(Protocol):
    """Finds traces."""

    name: str

    def services(self, trace_id: str) -> tuple[set[str], int]:
        """The services with a span in a trace, and the number of its spans. Raises HTTPError."""
        ...

    def page(self, trace_id: str) -> str:
        """The address of the trace for people."""
        ...


class Jaeger:
    """The query API of Jaeger; resources of spans name their service."""

    name = "Jaeger"

    def __init__(self, url: str) -> None:
        self._url = url

    def services(self, trace_id: str) -> tuple[set[str], int]:
        """Ask for one trace; one that is not there yet has no spans."""
        answer = httpx2.get(f"{self._url}/api/traces/{trace_id}", timeout=TIMEOUT_S)
        if answer.status_code == _NOT_FOUND:
            return set(), 0
        return in_jaeger(answer.raise_for_status().json()["data"])

    def page(self, trace_id: str) -> str:
        """The address in its interface."""
        return f"{self._url}/trace/{trace_id}"


class Phoenix:
    """The REST API of Phoenix, without resources of spans: their messages say the service."""

    name = "Phoenix"

    def __init__(self, url: str) -> None:
        self._url = url

    def services(self, trace_id: str) -> tuple[set[str], int]:
        """Ask for the spans of one trace."""
        answer = httpx2.get(
            f"{self._url}/v1/projects/default/spans",
            params={"trace_id": trace_id, "limit": 1000},
            timeout=TIMEOUT_S,
        )
        if answer.status_code == _NOT_FOUND:
            return set(), 0
        spans = answer.raise_for_status().json()["data"]
        return in_phoenix(spans), len(spans)

    def page(self, trace_id: str) -> str:
        """The address in its interface."""
        return f"{self._url}/redirects/traces/{trace_id}"


def in_jaeger(traces: Iterable[Mapping[str, Any]]) -> tuple[set[str], int]:
    """Read the services and the number of spans from traces of Jaeger's query API."""
    services: set[str] = set()
    count = 0
    for trace in traces:
        processes = trace["processes"]
        for span in trace["spans"]:
            services.add(processes[span["processID"]]["serviceName"].removeprefix("pml-"))
            count += 1
    return services, count


def in_phoenix(spans: Iterable[Mapping[str, Any]]) -> set[str]:
    """Read services from spans: events are published by their owner, queries are served by it, and
    requests over HTTP reach the gateway."""
    services: set[str] = set()
    for span in spans:
        operation = str(span["name"]).partition(" ")[0]
        subject = str(span["attributes"].get("messaging.destination.name", "")).split(".")
        if operation == "serve" or (operation == "publish" and subject[1:2] == ["evt"]):
            services.add(subject[2])
        elif operation in ("GET", "POST"):
            services.add("gateway")
    return services


def backend_of(url: str, *, stand_in: bool) -> TraceBackend:
    """Return the client of the backend that runs."""
    return Phoenix(url) if stand_in else Jaeger(url)
