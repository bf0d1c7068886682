"""Both ends of a query, whatever carries it: memory, NATS, or a socket."""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar, get_args

from nats.micro.request import ERROR_CODE_HEADER, ERROR_HEADER

from pml_common.bus import codec, measures, names, tracing
from pml_common.bus.codec import Envelope, Payloads
from pml_common.bus.errors import (
    BusError,
    BusUnavailable,
    NotBelieved,
    QueryErrorCode,
    QueryFailed,
    Rejected,
    TooLarge,
)
from pml_common.bus.identity import Identity, WrongSender
from pml_common.bus.query_macs import ERROR_CODE, MAC, QueryMacs
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.fault_words import text_of

log = logging.getLogger(__name__)

Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)

_CODES: dict[str, QueryErrorCode] = {code: code for code in get_args(QueryErrorCode)}
_STATUS: dict[QueryErrorCode, str] = {
    "not_found": "404",
    "invalid": "400",
    "conflict": "409",
    "unavailable": "503",
    "internal": "500",
}


class _Refused(QueryFailed):
    """A query that none of its clients has sent, or not now: the reply to it is not proven, so
    that its client, if there is one, does not take it for the reply to a query of its own."""

    def __init__(self, why: str) -> None:
        super().__init__("invalid", why)


class QueryExchange:
    """Builds and reads the queries and replies of one process."""

    def __init__(self, payloads: Payloads, identity: Identity, now: Callable[[], datetime]) -> None:
        """`now` is the server's time."""
        self.identity = identity
        self._payloads = payloads
        self._macs = QueryMacs(identity, now)

    def begin(self) -> None:
        """Prepare to answer queries (`QueryMacs.begin`)."""
        self._macs.begin()

    async def seal(
        self,
        query_type: QueryType[Query, Contract],
        query: Query,
        headers: dict[str, str],
        *,
        reply: str = "",
        inline_limit: int = codec.INLINE_LIMIT,
    ) -> Envelope:
        """Encode a query for sending, proven to be ours; adds to `headers`. A body of more than
        `inline_limit` bytes goes to the store; `reply` is the subject of the reply. Raises
        WrongSender."""
        subject, data = names.query_subject(query_type, query.scope), codec.encode(query)
        data = await codec.check_in(data, headers, self._payloads, inline_limit)
        digest = codec.digest_of(headers, data)
        headers[MAC] = self._macs.prove_query(query_type, subject, reply, digest)
        return Envelope(subject, data, headers, reply)

    async def answer(
        self,
        query_type: QueryType[Q, R],
        handler: Callable[[Q], Awaitable[R]],
        query: Envelope,
        inline_limit: int = codec.INLINE_LIMIT,
    ) -> Envelope:
        """Handle a query and build the reply, or the error to reply with. A body of more than
        `inline_limit` bytes goes to the store."""
        headers: dict[str, str] = {}
        try:
            with measures.serving(query_type.name):
                data = await self._handle(query_type, handler, query)
                data = await codec.check_in(data, headers, self._payloads, inline_limit)
        except BusError as error:
            failed = _failure(query_type, error)
            headers, data = _failure_headers(failed), failed.message.encode()
            if isinstance(error, _Refused):
                log.warning("a query %s was refused: %s", query_type.name, error)
                return Envelope("", data, headers)
        headers[MAC] = self._macs.prove_reply(query_type, query, headers, data)
        return Envelope("", data, headers)

    async def _handle(
        self,
        query_type: QueryType[Q, R],
        handler: Callable[[Q], Awaitable[R]],
        envelope: Envelope,
    ) -> bytes:
        """Verify and handle a query, and encode the reply. Raises QueryFailed for every failure."""
        with tracing.receiving(
            "serve", query_type.name, envelope.subject, envelope.headers
        ) as span:
            try:
                try:
                    self._macs.require_query(query_type, envelope)
                    query = await codec.opened(query_type.model, envelope, self._payloads)
                    _require_own_scope(query_type, query, envelope)
                except (NotBelieved, WrongSender) as error:
                    raise _Refused(str(error)) from error
                except Rejected as error:
                    raise QueryFailed("invalid", str(error)) from error
                except BusUnavailable as error:  # nothing was done: it may be asked again
                    raise QueryFailed("unavailable", str(error)) from error
                return codec.encode(await handler(query))
            except QueryFailed as failure:
                tracing.mark_failed(span, failure)
                raise
            except Exception as error:
                tracing.mark_failed(span, error)
                log.exception("%s failed", query_type.name)
                why = f"{type(error).__name__}: {text_of(error)}"
                raise QueryFailed("internal", why) from error

    def doubt(
        self, query_type: QueryType[Query, Contract], query: Envelope, reply: Envelope
    ) -> str | None:
        """Return, and log, why a reply is not the owner's to this query; None if it is."""
        fault = self._macs.reply_fault(query_type, query, reply)
        if fault is None:
            return None
        doubt = f"a reply was not believed: {fault}"
        if ERROR_CODE in reply.headers:
            doubt += f"; it says: {reply.data[:200].decode(errors='replace')}"
        log.warning("%s: %s", query_type.name, doubt)
        return doubt

    async def open(self, query_type: QueryType[Q, R], reply: Envelope) -> R:
        """Return the decoded reply, of which there is no `doubt`. Raises QueryFailed if it is an
        error or cannot be read."""
        code = reply.headers.get(ERROR_CODE)
        if code:  # an empty one is what the MAC of a success covers
            raise QueryFailed(_CODES.get(code, "internal"), reply.data.decode())
        try:
            return await codec.opened(query_type.reply, reply, self._payloads)
        except Rejected as error:
            raise QueryFailed("internal", f"{query_type.owner} answered: {error}") from error


def _require_own_scope(
    query_type: QueryType[Query, Contract], query: Query, envelope: Envelope
) -> None:
    """Raise NotBelieved unless the query has the scope of its subject, for which it is served."""
    if envelope.subject != names.query_subject(query_type, query.scope):
        raise NotBelieved(f"a query of {query.scope} on {envelope.subject}")


def _failure(query_type: QueryType[Query, Contract], error: BusError) -> QueryFailed:
    """Return the error to reply with."""
    if isinstance(error, QueryFailed):
        return error
    if isinstance(error, TooLarge):  # and will be when it is asked again
        return QueryFailed("internal", f"{query_type.owner} {query_type.name}: {error}")
    return no_reply(query_type, str(error))


def no_reply(query_type: QueryType[Query, Contract], why: str) -> QueryFailed:
    """Build the error for a query whose owner did not reply."""
    return QueryFailed("unavailable", f"{query_type.owner} {query_type.name}: {why}")


def _failure_headers(failure: QueryFailed) -> dict[str, str]:
    """Build the standard error headers, readable by any NATS tool, and our own code."""
    return {
        ERROR_CODE_HEADER: _STATUS[failure.code],
        ERROR_HEADER: " ".join(failure.message.split())[:1000],
        ERROR_CODE: failure.code,
    }
