"""GET /api/workflows/{id}/events: past events, then live ones (SSE)."""

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
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.direct_call import CallEnded
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import WorkflowFinished
from pml_gateway.application.workflow_service import no_such_workflow
from pml_gateway.domain.workflow.deletion import require_kept
from pml_gateway.domain.workflow.provenance import answers_stored_request
from pml_gateway.domain.workflow.run_end import workflow_finished
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.entrypoints.http.routing import GONE, NOT_FOUND, CallerOf, api_router
from pml_gateway.ports import Caller, WorkflowStore

KEEP_ALIVE_S = 15.0
LAST_EVENT_S = 5.0
TOO_SLOW = format_sse_event(
    event="gateway.reader-too-slow",
    data_str='{"message": "The stream ends here: too many events were unread. Nothing is lost: '
    'request it again with the id of the last event as Last-Event-ID."}',
)
"""Has no id, so that a browser reconnects from the last event that has one."""

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
    # A stream that ends because the gateway drains is followed again at once: on a connection of
    # its own, not on this one, which the server is about to close.
    "Connection": "close",
}

_SSE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}}, "description": "Events, each with its id."}
}


class EventStreams:
    """The open streams of this process; they end when it drains, for readers to reconnect."""

    def __init__(self) -> None:
        self.ended = False
        self._pending: set[asyncio.Timeout] = set()

    def end(self) -> None:
        """End every stream; later ones end after the past events."""
        self.ended, now = True, asyncio.get_running_loop().time()
        for wait in self._pending:
            if not wait.expired():
                wait.reschedule(now)

    async def with_pauses(
        self, live: AsyncIterator[Message], pause_s: float
    ) -> AsyncGenerator[Message | None]:
        """Yield live events, and None after each `pause_s` without one."""
        while not self.ended:
            wait = asyncio.timeout(pause_s)
            try:
                async with wait:
                    self._pending.add(wait)
                    message = await anext(live)
            except TimeoutError:
                yield None
            except StopAsyncIteration:
                return
            else:
                yield message
            finally:
                self._pending.discard(wait)


class EventStream(StreamingResponse):
    """A response that closes its sources at its end, whatever the reason."""

    media_type = "text/event-stream"

    def __init__(self, content: AsyncIterator[bytes], sources: AsyncExitStack) -> None:
        super().__init__(content, headers=_HEADERS)
        self._sources = sources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the end or until the client disconnects."""
        async with self._sources:
            await super().__call__(scope, receive, send)


def event_routes(
    workflows: WorkflowStore, bus: Bus, caller_of: CallerOf, streams: EventStreams
) -> APIRouter:
    """Routes that stream the events of workflows."""
    router = api_router("workflows")

    @router.get(
        "/workflows/{workflow_id}/events",
        operation_id="follow_workflow",
        response_class=StreamingResponse,
        responses={**NOT_FOUND, **GONE, **_SSE},
    )
    async def follow_workflow(
        workflow_id: UUID,
        caller: Annotated[Caller, Depends(caller_of)],
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> EventStream:
        """Stream every event of a workflow, from the first (or the one after `Last-Event-ID`) to
        its end. A reader with too many unread events gets `gateway.reader-too-slow` and should
        reconnect. So should one whose stream ends before `gateway.workflow-finished`: the gateway
        was stopped."""
        found = await workflows.get(caller.scope, workflow_id)
        if found is None:
            raise no_such_workflow(caller.scope, workflow_id)
        require_kept(found)
        entity = str(workflow_id)
        async with AsyncExitStack() as opening:
            live = await opening.enter_async_context(bus.follow(caller.scope, entity))
            stored = [each.message for each in await bus.history(caller.scope, entity)]
            sources = opening.pop_all()
        past, ended = _with_first(found, stored), found.finished_at is not None
        content = _events(past, live, last_event_id, streams, ended=ended)
        return EventStream(content, sources)

    return router


def _with_first(workflow: Workflow, stored: list[Message]) -> list[Message]:
    """Return the stored events after the request and its analysis, which are not published where
    they were known before the workflow was stored."""
    first = [workflow.requested, *([workflow.analysis] if workflow.analysis else [])]
    known = {message.message_id for message in stored}
    missing = (message for message in first if message.message_id not in known)
    past = [*missing, *(message for message in stored if not _is_of_query(message))]
    return [each for message in past for each in _with_end(message)]


def _with_end(message: Message) -> list[Message]:
    """Return a message and, after the end of a run or a direct call, that of its workflow, which
    nobody publishes."""
    run = message.run if isinstance(message, CallEnded) else message
    return [message, workflow_finished(run)] if isinstance(run, RunFinished) else [message]


def _is_of_query(message: Message) -> bool:
    """Whether it is an analysis that answered a query: of a request that may never have been
    stored."""
    return isinstance(message, ExecutionAnalyzed) and not answers_stored_request(message)


async def _events(
    past: list[Message],
    live: AsyncIterator[Message],
    last_seen: str | None,
    streams: EventStreams,
    *,
    ended: bool,
) -> AsyncGenerator[bytes]:
    """Yield each event once. A workflow that had `ended` before its history was read has at most
    its end to publish: the end is stored before it is published, and the history expires."""
    sent = _seen_until(past, last_seen)
    for message in past:
        if message.message_id not in sent:
            sent.add(message.message_id)
            yield _event(message)
    if any(isinstance(message, WorkflowFinished) for message in past):
        return
    pauses = streams.with_pauses(live, LAST_EVENT_S if ended else KEEP_ALIVE_S)
    try:
        async for event in _live(pauses, sent, ended=ended):
            yield event
    except Overrun:
        yield TOO_SLOW


async def _live(
    live: AsyncIterator[Message | None], sent: set[UUID], *, ended: bool
) -> AsyncGenerator[bytes]:
    """Yield live events to the end. Raises Overrun."""
    async for message in live:
        if message is None and ended:
            return
        if message is None:
            yield KEEPALIVE_COMMENT
        elif message.message_id not in sent and not _is_of_query(message):
            for each in _with_end(message):
                sent.add(each.message_id)
                yield _event(each)
                if isinstance(each, WorkflowFinished):
                    return


def _seen_until(past: list[Message], last_seen: str | None) -> set[UUID]:
    """Return the ids of events up to the last one that a reconnecting reader got."""
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
