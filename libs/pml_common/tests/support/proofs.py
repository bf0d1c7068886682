"""Queries and replies of any service, proven as the bus proves them."""

from datetime import UTC, datetime

from pml_common.bus import codec, names
from pml_common.bus.codec import Envelope
from pml_common.bus.identity import Identity, all_services_identity
from pml_common.bus.query_macs import MAC, QueryMacs
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType


def now() -> datetime:
    """Return the local time."""
    return datetime.now(UTC)


def query_of(
    query_type: QueryType[Query, Contract],
    query: Query,
    *,
    reply: str = "",
    identity: Identity | None = None,
    sent: datetime | None = None,
    subject: str | None = None,
) -> Envelope:
    """Build a query as a client would send it, at some time; as none would on another subject."""
    macs = QueryMacs(identity or all_services_identity(), lambda: sent or now())
    subject, data = subject or names.query_subject(query_type, query.scope), codec.encode(query)
    proof = macs.prove_query(query_type, subject, reply, codec.digest(data))
    return Envelope(subject, data, {MAC: proof}, reply)


def reply_of(
    query_type: QueryType[Query, Contract], query: Envelope, reply: Contract | Envelope
) -> Envelope:
    """Build the reply to a query, as its owner would send it."""
    macs = QueryMacs(all_services_identity(), now)
    macs.require_query(query_type, query)
    plain = reply if isinstance(reply, Envelope) else Envelope("", codec.encode(reply), {})
    proof = macs.prove_reply(query_type, query, plain.headers, plain.data)
    return Envelope("", plain.data, {**plain.headers, MAC: proof})
