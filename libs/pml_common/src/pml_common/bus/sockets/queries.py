"""Queries of one service over the sockets of this machine, and over NATS where there are none."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import TypeVar

from opentelemetry import trace
from typing_extensions import override

from pml_common.bus import tracing
from pml_common.bus.errors import BusUnavailable
from pml_common.bus.port import QueryClient
from pml_common.bus.query_exchange import QueryExchange, no_reply
from pml_common.bus.sockets.folder import SocketFolder
from pml_common.bus.sockets.frames import INLINE_LIMIT
from pml_common.bus.sockets.link import Link, LinkLost, NotServed
from pml_common.bus.sockets.links import Links
from pml_common.bus.sockets.server import SocketQueryServer
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.scope import Scope
from pml_common.telemetry import vocabulary

Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)


class SocketQueries(QueryClient):
    """Sends queries to services that have a folder of sockets, serves ours in our own folder.

    A query is sent a second time, over NATS, only if the socket certainly did not take it.
    """

    def __init__(
        self,
        folders: Mapping[str, Path],
        *,
        service: str,
        instance: str,
        exchange: QueryExchange,
        over_nats: QueryClient,
    ) -> None:
        """`folders` is the folder of each service's sockets, by its name."""
        self._exchange = exchange
        self._over_nats = over_nats
        self._links = {
            owner: Links(SocketFolder(path), service, owner, exchange.identity)
            for owner, path in folders.items()
        }
        own = folders.get(service)
        self._server = (
            None
            if own is None
            else SocketQueryServer(SocketFolder(own), exchange, service, instance)
        )

    @override
    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        links = self._links.get(query_type.owner)
        link = None if links is None else links.pick()
        if link is not None:
            try:
                return await self._over_socket(link, query_type, query, timeout)
            except NotServed:
                pass
        return await self._over_nats.request(query_type, query, timeout=timeout)

    async def look(self, owner: str) -> None:
        """Connect now to the replicas of a service."""
        await self._links[owner].look()

    async def serve(
        self,
        query_type: QueryType[Q, R],
        handler: Callable[[Q], Awaitable[R]],
        *,
        scopes: Collection[Scope] | None = None,
    ) -> None:
        """Serve a query on our socket, if we have a folder, until `stop`."""
        if self._server is not None:
            await self._server.serve(query_type, handler, scopes=scopes)

    async def stop(self, timeout: float) -> None:
        """Stop serving; see `SocketQueryServer.stop`."""
        if self._server is not None:
            await self._server.stop(timeout)

    async def close(self) -> None:
        """Close the connections to other services."""
        for links in self._links.values():
            await links.close()

    async def _over_socket(
        self, link: Link, query_type: QueryType[Q, R], query: Q, timeout: float
    ) -> R:
        with tracing.requesting(query_type) as headers:
            trace.get_current_span().set_attribute(vocabulary.TRANSPORT, "unix")
            try:
                async with asyncio.timeout(timeout):
                    asked = await self._exchange.seal(
                        query_type, query, headers, inline_limit=INLINE_LIMIT
                    )
                    reply = await link.request(asked)
                    doubt = self._exchange.doubt(query_type, asked, reply)
                    if doubt is not None:
                        raise no_reply(query_type, doubt)
                    return await self._exchange.open(query_type, reply)
            except TimeoutError as error:
                raise no_reply(query_type, f"no answer within {timeout:g} s") from error
            except (BusUnavailable, LinkLost) as error:
                raise no_reply(query_type, str(error)) from error
