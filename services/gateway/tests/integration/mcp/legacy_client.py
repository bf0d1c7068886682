"""An older client in raw HTTP, for what the official client cannot be made to do."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
from pydantic import JsonValue
from pydantic_core import from_json

from libs.pml_local.tests.support.patience import PATIENCE_S

Json = dict[str, JsonValue]

ACCEPT = {"Accept": "application/json, text/event-stream"}
LEGACY = {**ACCEPT, "MCP-Protocol-Version": "2025-11-25"}
HOLD: Json = {"code": "hold"}
"""Arguments of `pml_execute` that the stub of the agent API answers once it is told to."""


async def begin(
    url: str,
    http: httpx2.AsyncClient,
    user: str = "ada",
    capabilities: Json | None = None,
    version: str | None = None,
) -> str:
    """Begin a session and return its id."""
    params: Json = {
        "protocolVersion": version or "2025-11-25",
        "capabilities": capabilities or {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    answer = await http.post(url, json=body, headers={**ACCEPT, "X-User": user})
    assert answer.status_code == 200, answer.text
    return answer.headers["mcp-session-id"]


async def post(
    url: str, http: httpx2.AsyncClient, session: str, body: Json, user: str = "ada"
) -> httpx2.Response:
    """Post a JSON-RPC message in a session, and return the whole answer."""
    headers = {**LEGACY, "Mcp-Session-Id": session, "X-User": user}
    return await http.post(
        url, json={"jsonrpc": "2.0", **body}, headers=headers, timeout=PATIENCE_S
    )


def call(request_id: str | int, arguments: Json) -> Json:
    """Return a call of `pml_execute`."""
    params: Json = {"name": "pml_execute", "arguments": arguments}
    return {"id": request_id, "method": "tools/call", "params": params}


class OpenStream:
    """An event stream that is read message by message; `last_id` is the id of the last event."""

    last_id: str | None = None

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self._lines = answer.aiter_lines()

    async def next(self) -> Json:
        """Return the next message of the stream."""
        async for line in self._lines:
            name, _, value = line.partition(":")
            if name == "id":
                self.last_id = value.strip()
            if name == "data" and value.strip():
                return from_json(value)
        raise AssertionError("the stream has ended")

    async def until(self, event_id: str) -> Json:
        """Return the first message with this id or a later one."""
        while True:
            message = await self.next()
            if int(self.last_id or 0) >= int(event_id):
                return message

    async def comment(self) -> None:
        """Wait for the next comment."""
        async for line in self._lines:
            if line.startswith(":"):
                return
        raise AssertionError("the stream has ended")

    async def rest(self) -> list[str]:
        """Return the lines until the end."""
        return [line async for line in self._lines]


@asynccontextmanager
async def open_post(
    url: str, http: httpx2.AsyncClient, session: str, body: Json, user: str = "ada"
) -> AsyncGenerator[OpenStream]:
    """Post a JSON-RPC request in a session, and read its stream until the context exits."""
    headers = {**LEGACY, "Mcp-Session-Id": session, "X-User": user}
    message = {"jsonrpc": "2.0", **body}
    async with http.stream(
        "POST", url, json=message, headers=headers, timeout=PATIENCE_S
    ) as answer:
        yield OpenStream(answer)


def in_session(session: str, user: str = "ada", **more: str) -> dict[str, str]:
    """Return the headers of a request in a session."""
    return {**LEGACY, "Mcp-Session-Id": session, "X-User": user, **more}


@asynccontextmanager
async def open_get(
    url: str, http: httpx2.AsyncClient, session: str, last_id: str | None = None
) -> AsyncGenerator[OpenStream]:
    """Open the event stream of a session, after the event `last_id`."""
    headers = in_session(session, **({} if last_id is None else {"Last-Event-ID": last_id}))
    async with http.stream("GET", url, headers=headers, timeout=PATIENCE_S) as answer:
        assert answer.status_code == 200
        yield OpenStream(answer)
