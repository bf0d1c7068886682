"""Queries: request and reply, served as NATS micro services."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from importlib.metadata import version
from typing import TypeVar, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.micro.request import Request
from nats.micro.service import Endpoint, Service, ServiceConfig
from typing_extensions import override

from pml_common.bus import names, tracing
from pml_common.bus.client import DirectClient
from pml_common.bus.codec import Envelope
from pml_common.bus.connection import drain, flush
from pml_common.bus.errors import BusUnavailable, NoResponder
from pml_common.bus.port import QueryClient
from pml_common.bus.query_exchange import QueryExchange, no_reply
from pml_common.bus.tasks import finish
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.scope import Scope

log = logging.getLogger(__name__)

Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)


class NatsQueryClient(QueryClient):
    """Sends queries. A reply that is not the owner's to our query is dropped: it does not keep the
    owner's from being received."""

    def __init__(self, client: DirectClient, exchange: QueryExchange) -> None:
        self._client = client
        self._exchange = exchange

    @override
    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        doubts: list[str] = []
        with tracing.requesting(query_type) as headers:
            try:
                async with asyncio.timeout(timeout):
                    reply = await self._request(query_type, query, headers, doubts)
                    return await self._exchange.open(query_type, reply)
            except NoRespondersError as error:
                raise NoResponder(f"{query_type.owner} {query_type.name}") from error
            except (TimeoutError, NatsError) as error:
                why = "; ".join((f"no answer within {timeout:g} s", *doubts[-1:]))
                raise no_reply(query_type, why) from error
            except BusUnavailable as error:
                raise no_reply(query_type, str(error)) from error

    async def _request(
        self,
        query_type: QueryType[Q, R],
        query: Q,
        headers: dict[str, str],
        doubts: list[str],
    ) -> Envelope:
        if not self._client.is_connected:
            raise no_reply(query_type, "not connected to NATS")
        reply_to = await self._client.new_reply_subject()
        asked = await self._exchange.seal(query_type, query, headers, reply=reply_to)

        def accept(reply: Msg) -> Envelope | None:
            answer = Envelope("", reply.data, reply.headers or {})
            doubt = self._exchange.doubt(query_type, asked, answer)
            if doubt is None:
                return answer
            doubts.append(doubt)
            return None

        return await self._client.ask(asked.subject, asked.data, headers, reply_to, accept)


class QueryServer:
    """Serves queries, each request in its own task so that a slow one delays no other."""

    def __init__(
        self, client: Client, exchange: QueryExchange, service: str, instance: str
    ) -> None:
        self._client = client
        self._exchange = exchange
        self._config = ServiceConfig(
            name=f"pml-{service}",
            version=version("pml-common"),
            metadata={"instance": instance},
        )
        self._service: Service | None = None
        self._answering: set[asyncio.Task[None]] = set()

    async def serve(
        self,
        query_type: QueryType[Q, R],
        handler: Callable[[Q], Awaitable[R]],
        *,
        scopes: Collection[Scope] | None = None,
    ) -> None:
        """Serve a query until `stop`: in one queue group, whatever scopes each replica serves."""

        async def receive(request: Request) -> None:
            if not _is_asked(request):
                log.warning("%s: a message that nobody asked is not answered", query_type.name)
                return
            task = asyncio.create_task(self._answer(query_type, handler, request))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

        self._exchange.begin()
        if self._service is None:
            self._service = Service(self._client, self._config)
            await self._service.start()
        for subject in names.served_subjects(query_type, scopes):
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
        awaited_on = request._msg.reply  # pyright: ignore[reportPrivateUsage] - not public in nats-py
        asked = Envelope(request.subject, request.data, request.headers or {}, awaited_on)
        reply = await self._exchange.answer(query_type, handler, asked)
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
