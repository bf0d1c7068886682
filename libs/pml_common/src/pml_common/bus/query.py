"""Queries: request and reply, served as NATS micro services."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import TypeVar, cast, get_args

from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.micro.request import ERROR_CODE_HEADER, ERROR_HEADER, Request
from nats.micro.service import Endpoint, Service, ServiceConfig
from typing_extensions import override

from pml_common.bus import codec, names, tracing
from pml_common.bus.codec import Envelope
from pml_common.bus.connection import drain, flush
from pml_common.bus.delivery import Receiver, no_reply
from pml_common.bus.errors import (
    BusError,
    BusUnavailable,
    NoResponder,
    QueryErrorCode,
    QueryFailed,
)
from pml_common.bus.port import QueryClient
from pml_common.bus.tasks import finish
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType

log = logging.getLogger(__name__)

Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)

OUR_CODE_HEADER = "Pml-Error-Code"
_CODES: dict[str, QueryErrorCode] = {code: code for code in get_args(QueryErrorCode)}
_STATUS: dict[QueryErrorCode, str] = {
    "not_found": "404",
    "invalid": "400",
    "conflict": "409",
    "unavailable": "503",
    "internal": "500",
}


def failure_headers(failure: QueryFailed) -> dict[str, str]:
    """Build the standard error headers, readable by any NATS tool, and our own code."""
    return {
        ERROR_CODE_HEADER: _STATUS[failure.code],
        ERROR_HEADER: " ".join(failure.message.split())[:1000],
        OUR_CODE_HEADER: failure.code,
    }


def raise_failure(reply: Envelope) -> None:
    """Raise QueryFailed if a reply is an error."""
    if ERROR_CODE_HEADER in reply.headers:
        code = _CODES.get(reply.headers.get(OUR_CODE_HEADER, ""), "internal")
        raise QueryFailed(code, reply.data.decode() or reply.headers.get(ERROR_HEADER, ""))


async def reply_to(
    receiver: Receiver,
    query_type: QueryType[Q, R],
    handler: Callable[[Q], Awaitable[R]],
    request: Envelope,
    inline_limit: int = codec.INLINE_LIMIT,
) -> Envelope:
    """Handle a request and build the reply, or the error to reply with; a body of more than
    `inline_limit` bytes goes to the payload store."""
    headers: dict[str, str] = {}
    try:
        data = await receiver.answer(query_type, handler, request, headers, inline_limit)
    except QueryFailed as failure:
        headers, data = failure_headers(failure), failure.message.encode()
    except BusError as error:
        failure = no_reply(query_type, str(error))
        headers, data = failure_headers(failure), failure.message.encode()
    return Envelope("", data, headers)


class NatsQueryClient(QueryClient):
    """Sends queries."""

    def __init__(self, client: Client, receiver: Receiver) -> None:
        self._client = client
        self._receiver = receiver

    @override
    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        with tracing.requesting(query_type) as headers:
            try:
                async with asyncio.timeout(timeout):
                    return await self._request(query_type, query, headers, timeout)
            except NoRespondersError as error:
                raise NoResponder(f"{query_type.owner} {query_type.name}") from error
            except (TimeoutError, NatsError) as error:
                raise no_reply(query_type, f"no answer within {timeout:g} s") from error
            except BusUnavailable as error:
                raise no_reply(query_type, str(error)) from error

    async def _request(
        self, query_type: QueryType[Q, R], query: Q, headers: dict[str, str], timeout: float
    ) -> R:
        if not self._client.is_connected:
            raise no_reply(query_type, "not connected to NATS")
        asked = await self._receiver.seal_query(query_type, query, headers)
        reply = await self._client.request(
            asked.subject, asked.data, timeout=timeout, headers=headers
        )
        answer = Envelope(reply.subject, reply.data, reply.headers or {})
        raise_failure(answer)
        return await self._receiver.open_reply(query_type, asked, answer)


class QueryServer:
    """Serves queries, each request in its own task so that a slow one delays no other."""

    def __init__(self, client: Client, receiver: Receiver, service: str, instance: str) -> None:
        self._client = client
        self._receiver = receiver
        self._config = ServiceConfig(
            name=f"pml-{service}",
            version=version("pml-common"),
            metadata={"instance": instance},
        )
        self._service: Service | None = None
        self._answering: set[asyncio.Task[None]] = set()

    async def serve(
        self, query_type: QueryType[Q, R], handler: Callable[[Q], Awaitable[R]]
    ) -> None:
        """Serve a query until `stop`."""

        async def receive(request: Request) -> None:
            if not _is_asked(request):
                log.warning("%s: a message that nobody asked is not answered", query_type.name)
                return
            task = asyncio.create_task(self._answer(query_type, handler, request))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

        if self._service is None:
            self._service = Service(self._client, self._config)
            await self._service.start()
        subject = names.query_subject(query_type)
        await self._service.add_endpoint(name=query_type.name, subject=subject, handler=receive)
        await flush(self._client)

    async def stop(self, timeout: float) -> None:
        """Stop receiving requests; finish those in progress, cancel them after `timeout`."""
        if self._service is not None:
            for subscription in _subscriptions_of(self._service):
                await drain(subscription, timeout)
        await finish(set(self._answering), timeout)

    async def _answer(
        self, query_type: QueryType[Q, R], handler: Callable[[Q], Awaitable[R]], request: Request
    ) -> None:
        envelope = Envelope(request.subject, request.data, request.headers or {})
        reply = await reply_to(self._receiver, query_type, handler, envelope)
        try:
            await request.respond(reply.data, dict(reply.headers) or None)
        except NatsError as error:
            log.warning("%s: the reply was lost: %s", query_type.name, error)


def _is_asked(request: Request) -> bool:
    """Return whether a client asks: what the server delivers to a subject that somebody named for
    an answer of its API has no reply subject, or an acknowledgement's."""
    return request._msg.reply.startswith(names.INBOXES)  # pyright: ignore[reportPrivateUsage] - there is no public way


def _subscriptions_of(service: Service) -> list[Subscription]:
    """Return the subscriptions of a micro service's endpoints.

    They are private in nats-py: its public `stop()` drops requests that were received and not yet
    handled, and there is no public way to drain them (ADR 0001).
    """
    endpoints = cast("list[Endpoint]", service._endpoints)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
    found = (endpoint._subscription for endpoint in endpoints)  # pyright: ignore[reportPrivateUsage]
    return [subscription for subscription in found if subscription is not None]
