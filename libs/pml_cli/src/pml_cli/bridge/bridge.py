"""Passes messages between an MCP client on stdio and a gateway, in both directions."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any, Final, Protocol, cast

import httpx2

from pml_cli.bridge.messages import (
    PARSE_ERROR,
    SESSION_HEADER,
    Json,
    RequestId,
    cancelled_request,
    error_answer,
    headers_of,
    parsed,
    refusal,
    request_id,
)

log = logging.getLogger(__name__)

_TIMES: Final = httpx2.Timeout(None, connect=5.0)
_GONE_SESSION: Final = 404
_NO_STREAM: Final = 405
_TRY_AGAIN_S: Final = 0.5
_CHANGED: Final[Json] = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
_LOST: Final = (
    "the connection to the gateway was lost before the answer: the outcome is unknown; look at "
    "`pml status`, and at the workflow, before you call again"
)

Write = Callable[[Json], Awaitable[None]]


class Locate(Protocol):
    """Finds the gateway."""

    async def __call__(self, failed: str | None = None) -> str:
        """Return the address of a gateway that answers, which may take a while; `failed` is one
        that did not. Raises NoGateway."""
        ...


class NoGateway(Exception):
    """There is no gateway to send a message to; says what to do."""


class Bridge:
    """One client's connection. A gateway that comes back is found again: a message that
    was not sent is sent then, an older client's session is begun anew, and its stream resumed.
    """

    def __init__(self, locate: Locate, write: Write) -> None:
        self._locate = locate
        self._write = write
        self._http = httpx2.AsyncClient(timeout=_TIMES)
        self._open: dict[RequestId, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: str | None = None
        self._version: str | None = None
        self._hello: list[Json] = []
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        """End what is open, the session too."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            headers = headers_of({}, self._version, self._session)
            with suppress(NoGateway, httpx2.HTTPError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._http.delete(f"{await self._locate()}/mcp", headers=headers)
        await self._http.aclose()

    async def take(self, line: bytes) -> None:
        """Pass on a line of the client."""
        messages = parsed(line)
        if messages is None:
            await self._write(error_answer(None, "the line is no JSON-RPC message", PARSE_ERROR))
            return
        for message in messages:
            await self._take(message)

    async def _take(self, message: Json) -> None:
        asked = request_id(message)
        if asked is not None:
            task = self._spawn(self._request(message, asked))
            self._open[asked] = task
            task.add_done_callback(lambda done: self._forget(asked, done))
            if message.get("method") == "initialize":
                await asyncio.wait({task})  # the next messages belong to its session
            return
        ended = cancelled_request(message)
        if ended is not None and self._session is None and self._version is None:
            # Since 2026-07-28 to close the stream of a call is to cancel it.
            if (task := self._open.get(ended)) is not None:
                task.cancel()
            return
        await self._notify(message)

    async def _notify(self, message: Json) -> None:
        """Send a notification, or a response to the gateway's own request."""
        if message.get("method") == "notifications/initialized":
            self._hello = [*self._hello[:1], message]
        try:
            async with aclosing(self._posted(message)) as answers:
                async for answer in answers:
                    await self._write(answer)
        except (NoGateway, httpx2.HTTPError) as error:
            log.warning("%s is not passed on: %s", message.get("method", "a response"), error)
        if message.get("method") == "notifications/initialized" and self._session is not None:
            self._spawn(self._listen())

    async def _request(self, message: Json, asked: RequestId) -> None:
        try:
            async with aclosing(self._posted(message)) as answers:
                async for answer in answers:
                    await self._write(answer)
                    if answer.get("id") == asked and "method" not in answer:
                        return
            await self._write(error_answer(asked, _LOST))
        except NoGateway as error:
            log.warning("%s", error)
            await self._write(error_answer(asked, str(error)))
        except httpx2.HTTPError as error:
            log.warning("%s: %r", message.get("method"), error)
            await self._write(error_answer(asked, _LOST))

    async def _posted(self, message: Json) -> AsyncGenerator[Json]:
        """Send a message, once; yield what comes back. Raises NoGateway, and HTTPError where the
        connection is lost after it was sent."""
        method, asked = message.get("method"), request_id(message)
        failed: str | None = None
        while True:
            url, session = await self._locate(failed), self._session
            headers, body = headers_of(message, self._version, session), json.dumps(message)
            try:
                async with self._http.stream(
                    "POST", f"{url}/mcp", headers=headers, content=body
                ) as response:
                    if response.status_code == _GONE_SESSION and session and method != "initialize":
                        await self._reopen(url, session)
                        continue
                    if method == "initialize":
                        self._session = response.headers.get(SESSION_HEADER)
                        self._hello = [message]
                    if response.is_success:
                        async with aclosing(_messages(response)) as found:
                            async for each in found:
                                if method == "initialize" and each.get("id") == asked:
                                    self._negotiated(each)
                                yield each
                    elif asked is not None:
                        yield refusal(asked, response.status_code, await response.aread())
                    return
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                log.info("no answer from %s: %s", url, error)
                failed = url

    def _negotiated(self, answer: Json) -> None:
        result = answer.get("result")
        found = cast(Json, result).get("protocolVersion") if isinstance(result, dict) else None
        self._version = found if isinstance(found, str) else None

    async def _reopen(self, url: str, gone: str) -> None:
        """Begin the session of an older client anew, unless that was done. Raises HTTPError, and
        NoGateway where it is refused."""
        async with self._opening:
            if self._session != gone or not self._hello:
                return
            for message in self._hello:
                own = self._session if message.get("method") != "initialize" else None
                headers = headers_of(message, self._version, own)
                response = await self._http.post(
                    f"{url}/mcp", headers=headers, content=json.dumps(message)
                )
                if not response.is_success:
                    raise NoGateway(f"the gateway begins no session: HTTP {response.status_code}")
                self._session = response.headers.get(SESSION_HEADER, self._session)
            log.info("the session was begun anew")

    async def _listen(self) -> None:
        """Pass on what the gateway says by itself to an older client. After an interruption tools
        may have changed unheard."""
        last: str | None = None
        failed: str | None = None
        interrupted = False
        while self._session is not None:
            session = self._session
            try:
                url = failed = await self._locate(failed)
                headers = headers_of({}, self._version, session)
                headers |= {"last-event-id": last} if last else {}
                async with self._http.stream("GET", f"{url}/mcp", headers=headers) as response:
                    if response.status_code == _NO_STREAM:
                        return
                    if response.status_code == _GONE_SESSION:
                        last, interrupted = None, True
                        await self._reopen(url, session)
                        continue
                    failed = None
                    if response.is_success:
                        if interrupted:
                            await self._write(_CHANGED)
                        interrupted = True
                        async for event in httpx2.EventSource(response, max_event_size=None):
                            last = event.id or last
                            if event.data:
                                await self._write(json.loads(event.data))
            except (NoGateway, httpx2.HTTPError) as error:
                log.info("the gateway's stream is interrupted: %s", error)
            await asyncio.sleep(_TRY_AGAIN_S)

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _forget(self, asked: RequestId, task: asyncio.Task[None]) -> None:
        if self._open.get(asked) is task:
            del self._open[asked]


async def _messages(response: httpx2.Response) -> AsyncGenerator[Json]:
    """Yield the messages in the answer to a POST."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        async for event in httpx2.EventSource(response, max_event_size=None):
            if event.data:
                yield json.loads(event.data)
        return
    body = await response.aread()
    for message in (parsed(body) if body.strip() else None) or ():
        yield message
