"""Large answers over event streams: clients bound the size of an event, and none that of plain
JSON.

The SDK's own client reads events of up to 1 MiB, and loses its whole connection over a larger one.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, cast

from pydantic import JsonValue
from pydantic_core import from_json
from starlette.types import Message, Send

from pml_common.contracts.tool import JsonObject

MAX_EVENT_BYTES: Final = 1_000_000

HOLD_S: Final = 0.25
"""Seconds for which the start of a stream waits for the answer: clients wait for it, too."""

_EVENT_STREAM: Final = b"text/event-stream"
_BODY: Final = "http.response.body"


@asynccontextmanager
async def large_answers(send: Send, hold_s: float = HOLD_S) -> AsyncGenerator[Send]:
    """Send the response to one POST. An answer that is too large for an event is plain JSON where
    it comes first and soon, else the way to it. Each part of the body is a whole event."""
    answers = _LargeAnswers(send)
    opening = asyncio.create_task(answers.open_after(hold_s))
    try:
        yield answers.send
    finally:
        opening.cancel()
        await asyncio.wait([opening])


class _LargeAnswers:
    def __init__(self, send: Send) -> None:
        self._send = send
        self._writing = asyncio.Lock()
        self._begun = asyncio.Event()
        self._held: Message | None = None
        self._ended = False

    async def send(self, message: Message) -> None:
        """Pass on a part of the response; the start of a stream is held."""
        async with self._writing:
            await self._take(message)

    async def open_after(self, hold_s: float) -> None:
        """Send the start of a stream that is still held after a time."""
        await self._begun.wait()
        await asyncio.sleep(hold_s)
        async with self._writing:
            start, self._held = self._held, None
            if start is not None:
                await self._send(start)

    async def _take(self, message: Message) -> None:
        if message["type"] == "http.response.start" and is_event_stream(message):
            self._held = message
            self._begun.set()
        elif self._ended or (self._held is not None and not message.get("body")):
            await self._end(message)
        elif self._held is not None:
            await self._first(self._held, message)
        else:
            await self._send(self._bounded(message))

    async def _first(self, start: Message, message: Message) -> None:
        self._held = None
        large = _large_answer(message)
        if large is None:
            await self._send(start)
            await self._send(message)
            return
        self._ended = True
        kept = [
            (name, value) for name, value in start["headers"] if name.lower() != b"content-type"
        ]
        headers = [*kept, (b"content-type", b"application/json")]
        await self._send({**start, "headers": headers})
        await self._send({"type": _BODY, "body": large.data, "more_body": False})

    async def _end(self, message: Message) -> None:
        """Take an empty part: the end of a stream without an event, or what follows an answer."""
        if self._held is not None and not message.get("more_body", False):
            start, self._held = self._held, None
            await self._send(start)
            await self._send(message)

    def _bounded(self, message: Message) -> Message:
        large = _large_answer(message)
        if large is None:
            return message
        answer = large.answer
        told = json.dumps({"jsonrpc": "2.0", "id": answer["id"], "result": _way_to(answer)})
        return {**message, "body": f"event: message\r\ndata: {told}\r\n\r\n".encode()}


def is_event_stream(start: Message) -> bool:
    """Whether a response is an event stream."""
    return any(
        name.lower() == b"content-type" and value.startswith(_EVENT_STREAM)
        for name, value in start.get("headers", ())
    )


class _Large(NamedTuple):
    """A JSON-RPC response, and its JSON as it was sent."""

    answer: JsonObject
    data: bytes


def _large_answer(message: Message) -> _Large | None:
    """Return the JSON-RPC response in an event that is too large; None for any other part."""
    body: bytes = message.get("body", b"")
    if message["type"] != _BODY or len(body) <= MAX_EVENT_BYTES:
        return None
    lines = body.splitlines()
    data = b"".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
    try:
        found = cast("JsonValue", from_json(data))
    except ValueError:
        return None
    if not isinstance(found, dict) or not {"id", "result"} <= found.keys():
        return None
    return _Large(found, data)


def _way_to(answer: JsonObject) -> JsonObject:
    """Build the result that says where a large one is."""
    result = answer["result"] if isinstance(answer["result"], dict) else {}
    whole = result.get("structuredContent")
    workflow = whole.get("workflowId") if isinstance(whole, dict) else None
    way = (
        f'pml_get_task_result with {{"workflow_id": "{workflow}"}} returns it'
        if isinstance(workflow, str)
        else "a client that accepts larger events gets it; what it did is done"
    )
    size = len(json.dumps(result, ensure_ascii=False).encode())
    text = (
        f"The call has ended. Its result has {size:,} bytes, and an event of a stream may have "
        f"{MAX_EVENT_BYTES:,}: {way}."
    )
    kind = {"resultType": result["resultType"]} if "resultType" in result else {}
    return {**kind, "content": [{"type": "text", "text": text}], "isError": True}
