"""Subjects, streams and consumers: what things are called on the server. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote

from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import MessageType, QueryType
from pml_common.contracts.scope import Scope

Kind = Literal["evt", "cmd"]

DEAD_STREAM = "PML_DEAD"
DEAD_SUBJECTS = "pml.dead.>"
MAX_DELIVERIES_ADVISORIES = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES"
PAYLOAD_BUCKET = "PML_PAYLOADS"
CACHE_BUCKET = "PML_MEMOS"
PAYLOAD_STREAM = f"OBJ_{PAYLOAD_BUCKET}"
CACHE_STREAM = f"KV_{CACHE_BUCKET}"
TOKEN_LIMIT = 1024


@dataclass(frozen=True)
class Address:
    """A subject taken apart."""

    kind: Kind
    owner: str
    name: str
    version: int
    scope: Scope
    entity: str


def entity_token(entity: str) -> str:
    """One subject token for any text; UUIDs stay as they are. Raises ValueError for a name that is
    empty or, encoded, longer than a server takes in a subject."""
    token = quote(entity, safe="").replace(".", "%2E")
    if not 0 < len(token) <= TOKEN_LIMIT:
        raise ValueError(f"an entity takes 1 to {TOKEN_LIMIT} characters, encoded: {token[:80]!r}")
    return token


def type_prefix(kind: Kind, owner: str, name: str, version: int) -> str:
    """The part of a subject that tells the message type."""
    return f"pml.{kind}.{owner}.{name}.v{version}"


def prefix_of(message_type: MessageType[Message]) -> str:
    """The part of its subjects that all messages of a type share."""
    return type_prefix(
        message_type.kind, message_type.owner, message_type.name, message_type.version
    )


def subject_of(message_type: MessageType[Message], scope: Scope, entity: str) -> str:
    """Where a message about `entity` is published."""
    return f"{prefix_of(message_type)}.{scope}.{entity_token(entity)}"


def filter_of(message_type: MessageType[Message]) -> str:
    """Every message of a type, in all scopes."""
    return f"{prefix_of(message_type)}.>"


def entity_filter(scope: Scope, entity: str, owner: str = "*") -> str:
    """Every event about one entity."""
    return f"pml.evt.{owner}.*.*.{scope}.{entity_token(entity)}"


def query_subject(query_type: QueryType[Query, Contract]) -> str:
    """Where a query is asked."""
    return f"pml.qry.{query_type.owner}.{query_type.name}.v{query_type.version}"


def stream_of(kind: Kind, owner: str) -> str:
    """The stream that stores an owner's events or commands."""
    return f"PML_{owner.upper()}_{kind.upper()}"


def stream_subjects(kind: Kind, owner: str) -> str:
    """What that stream stores."""
    return f"pml.{kind}.{owner}.>"


def write_check(kind: Kind, owner: str) -> str:
    """Where that stream is tried; no message type and no consumer has this subject."""
    return f"pml.{kind}.{owner}.write-check"


def inbox_of(service: str) -> str:
    """Where replies to a service come; no other may subscribe there."""
    return f"_INBOX.{service}"


def dead_subject(durable: str) -> str:
    """Where a durable consumer buries what it cannot handle."""
    return f"pml.dead.{durable}"


def parse_subject(subject: str) -> Address:
    """Exact inverse of `subject_of`; ValueError says what is wrong."""
    tokens = subject.split(".")
    if len(tokens) != 8 or tokens[0] != "pml":
        raise ValueError(f"{subject!r} is not pml.<kind>.<owner>.<name>.v<N>.<org>.<project>.<id>")
    _, kind, owner, name, version, org, project, entity = tokens
    if kind != "evt" and kind != "cmd":
        raise ValueError(f"{subject!r}: kind {kind!r} is neither evt nor cmd")
    if not version.startswith("v") or not version[1:].isdecimal():
        raise ValueError(f"{subject!r}: {version!r} is not a version")
    scope = Scope(org=org, project=project)
    return Address(kind, owner, name, int(version[1:]), scope, unquote(entity))


def is_wanted(subject: str, wants: Callable[[Scope, str], bool] | None) -> bool:
    """Whether a listener wants what was published here; what is published under no subject of ours
    is left to whoever reads it, as is an entity that `wants` cannot read (ValueError)."""
    if wants is None:
        return True
    try:
        address = parse_subject(subject)
        return wants(address.scope, address.entity)
    except ValueError:
        return True
