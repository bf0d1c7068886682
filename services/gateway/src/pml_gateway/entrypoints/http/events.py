"""GET /api/workflows/{id}/events: what happened so far, then what happens, as it does (SSE)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from pml_common.bus.errors import Overrun
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.gateway import WorkflowFinished
from pml_gateway.application.workflow_service import no_such_workflow
from pml_gateway.entrypoints.http.callers import NOT_FOUND, CallerOf, api_router
from pml_gateway.ports import Caller, WorkflowStore

KEEP_ALIVE_S = 15.0
LAST_WORDS_S = 5.0
TOO_SLOW = format_sse_event(
    event="gateway.reader-too-slow",
    data_str='{"message": "This stream ends here: too much was left unread. Nothing is lost: '
    'ask again with the id of the last event as Last-Event-ID."}',
)
"""Without an id of its own: a browser asks again from the last event that has one."""

_SSE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}}, "description": "Events, each with its id."}
}


class EventStreams:
    """The streams of this process, until it stops: their readers go on elsewhere."""

    def __init__(self) -> None:
        self.ended = False
        self._waits: set[asyncio.Timeout] = set()

    def end(self) -> None:
        """End every stream, and those to come once they have told the past."""
        self.ended, now = True, asyncio.get_running_loop().time()
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(now)

    async def with_pauses(
        self, live: AsyncIterator[Message], pause_s: float
    ) -> AsyncGenerator[Message | None]:
        """Live events, and None after each while without one."""
        while not self.ended:
            wait = asyncio.timeout(pause_s)
            try:
                async with wait:
                    self._waits.add(wait)
                    message = await anext(live)
            except TimeoutError:
                yield None
            except StopAsyncIteration:
                return
            else:
                yield message
            finally:
                self._waits.discard(wait)


class EventStream(StreamingResponse):
    """A stream that closes what it reads from, however it ends."""

    media_type = "text/event-stream"

    def __init__(self, content: AsyncIterator[bytes], sources: AsyncExitStack) -> None:
        super().__init__(content, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._sources = sources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the end or until nobody listens."""
        async with self._sources:
            await super().__call__(scope, receive, send)


def event_routes(
    workflows: WorkflowStore, bus: Bus, caller_of: CallerOf, streams: EventStreams
) -> APIRouter:
    """Follow workflows."""
    router = api_router("workflows")

    @router.get(
        "/workflows/{workflow_id}/events",
        operation_id="follow_workflow",
        response_class=StreamingResponse,
        responses={**NOT_FOUND, **_SSE},
    )
    async def follow_workflow(
        workflow_id: UUID,
        caller: Annotated[Caller, Depends(caller_of)],
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> EventStream:
        """Every event of a workflow, from the first (or the one after `Last-Event-ID`) to its end.
        A reader that leaves too much unread is told `gateway.reader-too-slow`, and asks again; so
        does one whose stream ends before `gateway.workflow-finished`: a gateway was stopped."""
        found = await workflows.get(caller.scope, workflow_id)
        if found is None:
            raise no_such_workflow(caller.scope, workflow_id)
        entity = str(workflow_id)
        async with AsyncExitStack() as opening:
            live = await opening.enter_async_context(bus.follow(caller.scope, entity))
            past = [stored.message for stored in await bus.history(caller.scope, entity)]
            sources = opening.pop_all()
        ended = found.finished_at is not None
        told = _told(past, live, last_event_id, streams, ended=ended)
        return EventStream(told, sources)

    return router


async def _told(
    past: list[Message],
    live: AsyncIterator[Message],
    last_seen: str | None,
    streams: EventStreams,
    *,
    ended: bool,
) -> AsyncGenerator[bytes]:
    """Each event once. What had `ended` before its past was read has at most its end to tell: it
    is kept before it is stated, and forgotten after a while."""
    told = _seen_until(past, last_seen)
    for message in past:
        if message.message_id not in told:
            told.add(message.message_id)
            yield _event(message)
    if any(isinstance(message, WorkflowFinished) for message in past):
        return
    pauses = streams.with_pauses(live, LAST_WORDS_S if ended else KEEP_ALIVE_S)
    try:
        async for event in _live(pauses, told, ended=ended):
            yield event
    except Overrun:
        yield TOO_SLOW


async def _live(
    live: AsyncIterator[Message | None], told: set[UUID], *, ended: bool
) -> AsyncGenerator[bytes]:
    """What happens from now on, to the end. Raises Overrun."""
    async for message in live:
        if message is None and ended:
            return
        if message is None:
            yield KEEPALIVE_COMMENT
        elif message.message_id not in told:
            told.add(message.message_id)
            yield _event(message)
            if isinstance(message, WorkflowFinished):
                return


def _seen_until(past: list[Message], last_seen: str | None) -> set[UUID]:
    """The ids of events up to the one that a reconnecting reader saw last."""
    ids = [message.message_id for message in past]
    known = [str(each) for each in ids]
    return set(ids[: known.index(last_seen) + 1]) if last_seen in known else set()


def _event(message: Message) -> bytes:
    entry = catalog.type_of(message)
    return format_sse_event(
        event=f"{entry.owner}.{entry.name}",
        id=str(message.message_id),
        data_str=message.model_dump_json(),
    )
