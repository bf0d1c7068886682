"""Names of subjects, streams and buckets on the server. Pure."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args
from urllib.parse import quote, unquote

from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import MessageType, QueryType, Service
from pml_common.contracts.scope import Scope

Kind = Literal["evt", "cmd", "run", "sig"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

DEAD_STREAM = "PML_DEAD"
DEAD_SUBJECTS = "pml.dead.>"
MAX_DELIVERIES_ADVISORIES = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES"
STORED = "pml.stored."
"""Prefix of the subjects on which the server republishes stored messages."""
INBOXES = "_INBOX."
"""Prefix of the subjects of replies."""
PAYLOAD_STREAM = "PML_BODIES"
PAYLOAD_SUBJECTS = "pml.body.>"
CACHE_BUCKET = "PML_MEMOS"
CACHE_STREAM = f"KV_{CACHE_BUCKET}"
TOKEN_LIMIT = 1024
_ANY_SCOPE = "*.*"


@dataclass(frozen=True)
class Address:
    """A parsed subject."""

    kind: Kind
    owner: str
    name: str
    version: int
    scope: Scope
    entity: str


def entity_token(entity: str) -> str:
    """Encode any text as one subject token; UUIDs are unchanged. Raises ValueError for a text that
    is empty or, encoded, longer than `TOKEN_LIMIT`."""
    token = quote(entity, safe="").replace(".", "%2E")
    if not 0 < len(token) <= TOKEN_LIMIT:
        raise ValueError(f"an entity takes 1 to {TOKEN_LIMIT} characters, encoded: {token[:80]!r}")
    return token


def type_prefix(kind: Kind, owner: str, name: str, version: int) -> str:
    """Return the part of a subject that identifies the message type."""
    return f"pml.{kind}.{owner}.{name}.v{version}"


def prefix_of(message_type: MessageType[Message]) -> str:
    """Return the common prefix of a message type's subjects."""
    return type_prefix(
        message_type.kind, message_type.owner, message_type.name, message_type.version
    )


def subject_of(message_type: MessageType[Message], scope: Scope, entity: str) -> str:
    """Return the subject of a message about `entity`."""
    return f"{prefix_of(message_type)}.{scope}.{entity_token(entity)}"


def filter_of(message_type: MessageType[Message]) -> str:
    """Return the filter for all messages of a type, in all scopes."""
    return f"{prefix_of(message_type)}.>"


def heard_filter(message_type: MessageType[Message]) -> str:
    """Return the filter on which listeners hear all messages of a type; events once they are
    stored, so that none is heard that its fence refused."""
    published = filter_of(message_type)
    return stored_subject(published) if message_type.kind == "evt" else published


def stored_subject(subject: str) -> str:
    """Return the subject on which the server republishes a message once it is stored."""
    return f"{STORED}{subject.removeprefix('pml.')}"


def published_subject(subject: str) -> str:
    """Return the subject on which a message was published, from that on which it is heard."""
    return f"pml.{subject.removeprefix(STORED)}" if subject.startswith(STORED) else subject


def entity_filter(scope: Scope, entity: str, owner: str = "*") -> str:
    """Return the filter for all events about one entity."""
    return f"pml.evt.{owner}.*.*.{scope}.{entity_token(entity)}"


def events_filter(
    of: MessageType[Message] | Service | Literal["*"], scope: Scope, entity: str
) -> str:
    """Return the filter for the events of one type, one owner or all about one entity."""
    if isinstance(of, MessageType):
        return subject_of(of, scope, entity)
    return entity_filter(scope, entity, of)


def events_stream(of: MessageType[Message] | Service) -> str:
    """Return the stream that has the events of one type or one owner."""
    if isinstance(of, MessageType):
        return stream_of(of.kind, of.owner)
    return stream_of("evt", of)


def query_subject(query_type: QueryType[Query, Contract], scope: Scope | None = None) -> str:
    """Return the subject of a query; of a `scoped` one in this scope, or the filter for all."""
    subject = f"pml.qry.{query_type.owner}.{query_type.name}.v{query_type.version}"
    return f"{subject}.{scope or _ANY_SCOPE}" if query_type.scoped else subject


def served_subjects(
    query_type: QueryType[Query, Contract], scopes: Collection[Scope] | None
) -> Sequence[str]:
    """Return the subjects that a replica serves: of a `scoped` query one for each of its scopes,
    or the filter for all."""
    if not query_type.scoped or scopes is None:
        return (query_subject(query_type),)
    return [query_subject(query_type, each) for each in scopes]


def of_any_scope(subject: str) -> str:
    """Return the filter for all scopes that has the subject of a `scoped` query."""
    return f"{subject.rsplit('.', 2)[0]}.{_ANY_SCOPE}"


def stream_of(kind: Kind, owner: str) -> str:
    """Return the name of the stream of an owner's messages of one kind."""
    return f"PML_{owner.upper()}_{kind.upper()}"


def stream_subjects(kind: Kind, owner: str) -> str:
    """Return the subjects of that stream."""
    return f"pml.{kind}.{owner}.>"


def write_check(kind: Kind, owner: str) -> str:
    """Return the subject of that stream's write check; no message type or consumer uses it."""
    return f"pml.{kind}.{owner}.write-check"


def bodies_of(service: str) -> str:
    """Return the prefix of the subjects under which a service stores large bodies; no other may
    publish there."""
    return f"pml.body.{service}"


def body_subject(service: str, digest: str, period: str, part: str) -> str:
    """Return the subject of a part of a body, each stored once; `*` stands for any."""
    return f"{bodies_of(service)}.{digest}.{period}.{part}"


def inbox_of(service: str) -> str:
    """Return the prefix of a service's reply subjects; no other may subscribe to it."""
    return f"{INBOXES}{service}"


def dead_subject(durable: str) -> str:
    """Return the subject of a durable consumer's dead letters."""
    return f"pml.dead.{durable}"


def parse_subject(subject: str) -> Address:
    """Parse a subject: the exact inverse of `subject_of`. Raises ValueError."""
    tokens = subject.split(".")
    if len(tokens) != 8 or tokens[0] != "pml":
        raise ValueError(f"{subject!r} is not pml.<kind>.<owner>.<name>.v<N>.<org>.<project>.<id>")
    _, kind, owner, name, version, org, project, entity = tokens
    if kind not in KINDS:
        raise ValueError(f"{subject!r}: kind {kind!r} is none of {', '.join(KINDS)}")
    if not version.startswith("v") or not version[1:].isdecimal():
        raise ValueError(f"{subject!r}: {version!r} is not a version")
    scope = Scope(org=org, project=project)
    return Address(kind, owner, name, int(version[1:]), scope, unquote(entity))


def is_wanted(subject: str, wants: Callable[[Scope, str], bool] | None) -> bool:
    """Return whether a listener wants a message; true also for a subject that cannot be parsed,
    and for an entity that `wants` cannot parse (ValueError): the reader decides."""
    if wants is None:
        return True
    try:
        address = parse_subject(subject)
        return wants(address.scope, address.entity)
    except ValueError:
        return True
