"""Server-sent events: past ones, then live ones, each once, to the end."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.trace import LogWritten
from pml_common.http_server import serve_http
from pml_gateway.app import mcp_endpoint, rest_api
from pml_gateway.entrypoints.http.http_protocol import BoundedHttpProtocol
from pml_local.ports import free_port
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.harness import Json, World, Worlds
from services.gateway.tests.support.offering import StubOffers

pytestmark = pytest.mark.integration

ALL_EVENTS = [
    "gateway.execution-requested",
    "analyzer.execution-analyzed",
    "executor.run-finished",
    "gateway.workflow-finished",
]


def events_of(text: str) -> list[Json]:
    """Parse the events of a stream, without comments."""
    found: list[Json] = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[0] != ":")
        if fields:
            found.append({**fields, "data": json.loads(fields["data"])})
    return found


@asynccontextmanager
async def streaming(w: World) -> AsyncGenerator[httpx2.AsyncClient]:
    """Serve over a real socket: the in-memory client only returns complete responses."""
    port = free_port()
    async with (
        serve_http(
            rest_api(w.parts, mcp_endpoint(w.parts, StubOffers())),
            "127.0.0.1",
            port,
            BoundedHttpProtocol,
        ),
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as http,
    ):
        yield http


async def test_the_stream_of_a_finished_workflow_is_complete_and_ends(world: Worlds) -> None:
    async with world() as w:
        workflow_id = (await w.execute("return 1;"))["workflow_id"]
        answer = await w.http.get(f"/api/workflows/{workflow_id}/events")
        assert answer.headers["content-type"].startswith("text/event-stream")
        # A reader that reconnects does not meet a connection that a stopping gateway is closing.
        assert answer.headers["connection"] == "close"
        events = events_of(answer.text)
        assert [each["event"] for each in events] == ALL_EVENTS
        assert events[-1]["data"]["status"] == "success"
        assert len({each["id"] for each in events}) == len(ALL_EVENTS)


async def test_a_reader_that_reconnects_misses_and_repeats_nothing(world: Worlds) -> None:
    async with world() as w:
        workflow_id = (await w.execute("return 1;"))["workflow_id"]
        path = f"/api/workflows/{workflow_id}/events"
        first = events_of((await w.http.get(path)).text)
        for seen in range(len(ALL_EVENTS)):
            again = await w.http.get(path, headers={"last-event-id": first[seen]["id"]})
            assert (
                events_of(again.text) == first[seen + 1 :]
                if seen < len(ALL_EVENTS) - 1
                else not again.text
            )
        unknown = await w.http.get(path, headers={"last-event-id": "whatever"})
        assert events_of(unknown.text) == first


async def test_a_running_workflow_is_followed_without_gap_or_duplicate_to_its_end(
    world: Worlds,
) -> None:
    async with world() as w, streaming(w) as http:
        workflow_id = (await w.execute("hang", timeout=0.1))["workflow_id"]  # waits: until it runs
        text = ""
        async with http.stream("GET", f"/api/workflows/{workflow_id}/events") as stream:
            async for chunk in stream.aiter_text():
                text += chunk
                if text.count("event: ") == 2:
                    w.peers.release.set()
        assert [each["event"] for each in events_of(text)] == ALL_EVENTS


async def test_many_readers_from_the_first_moment_see_the_same(world: Worlds) -> None:
    async with world() as w, streaming(w) as http:
        running = asyncio.create_task(w.execute("hang", idempotency_key="k"))
        (request,) = await eventually(lambda: w.peers.requests)
        path = f"/api/workflows/{request.workflow_id}/events"
        readers = [asyncio.create_task(http.get(path)) for _ in range(5)]
        await eventually(lambda: w.peers.runs)
        w.peers.release.set()
        await running
        for answer in await asyncio.gather(*readers):
            assert [each["event"] for each in events_of(answer.text)] == ALL_EVENTS


async def test_a_stream_ends_when_the_gateway_stops(world: Worlds) -> None:
    async with world() as w, streaming(w) as http:
        workflow_id = (await w.execute("hang", timeout=0.1))["workflow_id"]  # waits: until it runs
        await eventually(lambda: w.peers.runs)
        before = len(w.broker.subscriptions)
        reader = asyncio.create_task(http.get(f"/api/workflows/{workflow_id}/events"))
        await eventually(lambda: len(w.broker.subscriptions) > before)
        await w.parts.bus.drain(1)
        events = events_of((await reader).text)
        assert [each["event"] for each in events] == ALL_EVENTS[:2]


async def test_a_reader_continues_elsewhere_after_its_gateway_stops(world: Worlds) -> None:
    async with world() as w, streaming(w) as http:
        workflow_id = (await w.execute("hang", timeout=0.1))["workflow_id"]  # waits: until it runs
        await eventually(lambda: w.peers.runs)
        path, before = f"/api/workflows/{workflow_id}/events", len(w.broker.subscriptions)
        reader = asyncio.create_task(http.get(path))
        await eventually(lambda: len(w.broker.subscriptions) > before)
        w.parts.streams.end()
        seen = events_of((await reader).text)
        assert [each["event"] for each in seen] == ALL_EVENTS[:2]

        late = events_of((await http.get(path)).text)
        assert late == seen

        w.peers.release.set()
        w.parts.streams.ended = False  # in another gateway
        rest = await http.get(path, headers={"last-event-id": seen[-1]["id"]})
        assert [each["event"] for each in (*seen, *events_of(rest.text))] == ALL_EVENTS


async def test_a_gateway_that_drains_is_not_ready(world: Worlds) -> None:
    async with world() as w:
        assert (await w.http.get("/readyz")).status_code == 200
        w.parts.readiness.stopping = True
        assert (await w.http.get("/readyz")).json() == {"status": "stopping"}
        assert (await w.http.get("/livez")).status_code == 200


async def test_without_nats_a_stream_is_refused(world: Worlds) -> None:
    async with world() as w:
        workflow_id = (await w.execute("return 1;"))["workflow_id"]
        w.broker.available = False
        answer = await w.http.get(f"/api/workflows/{workflow_id}/events")
        assert answer.status_code == 503


async def test_a_reader_that_is_too_slow_is_told_so_and_reconnects(world: Worlds) -> None:
    async with world() as w, streaming(w) as http:
        workflow_id = (await w.execute("hang", timeout=0.1))["workflow_id"]  # waits: until it runs
        path, text = f"/api/workflows/{workflow_id}/events", ""
        lines, last = range(60), 0
        async with http.stream("GET", path) as stream:
            chunks = stream.aiter_text()
            while text.count("event: ") < 2:
                text += await anext(chunks)
            for _ in lines:
                last = await w.peers.bus.publish(line(workflow_id, "x" * 300_000, last))
            async for chunk in chunks:
                text += chunk
        *before, last = events_of(text)
        assert last["event"] == "gateway.reader-too-slow"
        assert "id" not in last
        assert len(before) < len(ALL_EVENTS) + len(lines)

        w.peers.release.set()
        rest = await http.get(path, headers={"last-event-id": before[-1]["id"]})
        ids = [each["id"] for each in (*before, *events_of(rest.text))]
        assert len(ids) == len(set(ids)) == len(ALL_EVENTS) + len(lines)


def line(workflow_id: object, text: str, previous: int) -> TraceRecorded:
    """Build the event of a logged line."""
    logged = LogWritten(trace_id=uuid4(), ts=1.0, level="info", message=text)
    return TraceRecorded(
        event_id=uuid4(),
        scope=SCOPE,
        workflow_id=UUID(str(workflow_id)),
        entries=(logged,),
        previous=previous,
    )
