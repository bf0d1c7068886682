"""Streams and consumers on the server, derived from the catalog and created idempotently."""
# nats-py leaves its **params untyped:
# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NotFoundError

from pml_common.bus import names
from pml_common.bus.errors import TooFewServers
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer, DeadLetterConsumer, Service

DAY = 24 * 3600.0
MESSAGE_AGE_S = 7 * DAY
PAYLOAD_AGE_S = 2 * MESSAGE_AGE_S
"""Twice a message's, so that one stored again after a week may share a body already stored."""
CACHE_AGE_S = 7 * DAY
DEAD_AGE_S = 30 * DAY
DUPLICATE_WINDOW_S = 300.0
MAX_ACK_PENDING = 1000
"""Unacknowledged deliveries of one consumer, pending retries included: bounds a backlog."""
MAX_REPLICAS = 5
"""The server's own limit."""
Storage = Literal["file", "memory"]

_RETENTION: Mapping[str | None, api.RetentionPolicy] = {
    "cmd": api.RetentionPolicy.WORK_QUEUE,
    "run": api.RetentionPolicy.INTEREST,
}
_NAME_IN_USE = 10058
_NO_PEERS = 10005
_TOO_FEW_SERVERS = (_NO_PEERS, 10074)
_MANAGED = (
    *("subjects", "retention", "discard", "max_age", "max_msgs_per_subject", "duplicate_window"),
    *("allow_direct", "allow_rollup_hdrs", "allow_msg_ttl", "deny_delete"),
    *("num_replicas", "storage", "republish"),
)
"""The stream fields that we manage; others, such as its placement, are the operator's."""
_PROVISIONED = ("num_replicas", "storage")
"""Fields of an existing stream that only `pml bus provision` changes."""


@dataclass(frozen=True)
class StreamSettings:
    """Replication and storage of every stream and bucket; consumers inherit their stream's."""

    replicas: int = 1
    storage: Storage = "file"


DEFAULTS: Final = StreamSettings()


def stream_configs(settings: StreamSettings) -> list[api.StreamConfig]:
    """Return every stream: one per owner and kind of message, dead letters, the buckets."""
    subjects = {
        names.stream_of(entry.kind, entry.owner): [names.stream_subjects(entry.kind, entry.owner)]
        for entry in catalog.MESSAGES
        if entry.is_stored
    }
    kinds = {names.stream_of(each.kind, each.owner): each.kind for each in catalog.MESSAGES}
    subjects[names.DEAD_STREAM] = [names.DEAD_SUBJECTS, f"{names.MAX_DELIVERIES_ADVISORIES}.>"]
    streams = [
        api.StreamConfig(
            name=name,
            subjects=stored,
            retention=_RETENTION.get(kinds.get(name), api.RetentionPolicy.LIMITS),
            max_age=DEAD_AGE_S if name == names.DEAD_STREAM else MESSAGE_AGE_S,
            duplicate_window=DUPLICATE_WINDOW_S,
            allow_direct=True,
            allow_msg_ttl=True,  # for write checks
            republish=_republished(stored) if kinds.get(name) == "evt" else None,
        )
        for name, stored in subjects.items()
    ]
    kept = [*streams, _payload_bucket(), _cache_bucket()]
    storage = api.StorageType(settings.storage)
    return [each.evolve(num_replicas=settings.replicas, storage=storage) for each in kept]


def _republished(subjects: list[str]) -> api.RePublish:
    """Configure that a stream's events are heard once they are stored."""
    [published] = subjects
    return api.RePublish(src=published, dest=names.stored_subject(published))


def stream_names() -> list[str]:
    """Return the names of all streams."""
    return [config.name or "" for config in stream_configs(StreamSettings())]


def _payload_bucket() -> api.StreamConfig:
    """Configure the stream of an object store as nats-py does."""
    bucket = names.PAYLOAD_BUCKET
    return api.StreamConfig(
        name=names.PAYLOAD_STREAM,
        subjects=[f"$O.{bucket}.C.>", f"$O.{bucket}.M.>"],
        max_age=PAYLOAD_AGE_S,
        discard=api.DiscardPolicy.NEW,
        allow_rollup_hdrs=True,
        allow_direct=True,
    )


def _cache_bucket() -> api.StreamConfig:
    """Configure the stream of a key-value bucket as nats-py does."""
    return api.StreamConfig(
        name=names.CACHE_STREAM,
        subjects=[f"$KV.{names.CACHE_BUCKET}.>"],
        max_age=CACHE_AGE_S,
        max_msgs_per_subject=1,
        duplicate_window=120.0,
        discard=api.DiscardPolicy.NEW,
        allow_direct=True,
        allow_rollup_hdrs=True,
        allow_msg_ttl=True,
        deny_delete=True,
    )


def differences(
    config: api.StreamConfig, wanted: api.StreamConfig
) -> Mapping[str, tuple[object, object]]:
    """Return the managed fields that differ: current and wanted value of each."""
    return {
        name: (is_now, should_be)
        for name in _MANAGED
        if (should_be := getattr(wanted, name))  # else the server's default does
        and (is_now := getattr(config, name)) != should_be
    }


def consumer_config(consumer: Consumer[Message] | DeadLetterConsumer) -> api.ConsumerConfig:
    """Configure a durable pull consumer; retries are delayed by naks, not by the server."""
    is_plain = isinstance(consumer, Consumer)
    return api.ConsumerConfig(
        name=consumer.durable,
        durable_name=consumer.durable,
        filter_subject=names.filter_of(consumer.message) if is_plain else None,
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=consumer.ack_wait_s,
        max_deliver=consumer.max_deliver,
        max_ack_pending=MAX_ACK_PENDING,
    )


def stream_of(consumer: Consumer[Message] | DeadLetterConsumer) -> str:
    """Return the stream that a consumer reads."""
    if isinstance(consumer, DeadLetterConsumer):
        return names.DEAD_STREAM
    return names.stream_of(consumer.message.kind, consumer.message.owner)


SHARED_STREAMS_OWNER: Service = "gateway"
"""The service that may change the streams without an owner: dead letters and buckets."""


def may_change(service: str, stream: str) -> bool:
    """Return whether a service may change an existing stream: only its owner may."""
    owned = {names.stream_of(entry.kind, entry.owner): entry.owner for entry in catalog.MESSAGES}
    return owned.get(stream, SHARED_STREAMS_OWNER) == service


async def ensure_all(js: JetStreamContext, service: str, settings: StreamSettings) -> None:
    """Create missing streams, as any service may start first; update the service's own where they
    differ, except provisioned fields, and create or update its consumers.

    Raises TooFewServers if a required stream cannot be created."""
    refused = await asyncio.gather(
        *(_ensure_stream(js, config, service) for config in stream_configs(settings))
    )
    every = (*catalog.CONSUMERS, catalog.GATEWAY_ON_DEAD_LETTER)
    own = (consumer for consumer in every if creates(service, consumer))
    try:
        await asyncio.gather(*(ensure_consumer(js, consumer) for consumer in own))
    except NotFoundError as error:
        raise next(filter(None, refused), error) from None


def creates(service: str, consumer: Consumer[Message] | DeadLetterConsumer) -> bool:
    """Return whether a service creates a consumer: its own, and all of what it publishes to be kept
    until it is handled, else a message could come before one of its consumers."""
    if consumer.service == service or isinstance(consumer, DeadLetterConsumer):
        return consumer.service == service
    return consumer.message.until_handled and consumer.message.owner == service


async def ensure_consumer(
    js: JetStreamContext, consumer: Consumer[Message] | DeadLetterConsumer
) -> None:
    """Create or update one durable consumer."""
    await js.add_consumer(stream_of(consumer), consumer_config(consumer))


async def create_stream(js: JetStreamContext, config: api.StreamConfig) -> None:
    """Create one stream; no-op if it exists with the same configuration. Raises TooFewServers."""
    with _too_few_servers(config):
        await js.add_stream(config)


async def update_stream(js: JetStreamContext, config: api.StreamConfig) -> None:
    """Update one stream to this configuration. Raises TooFewServers."""
    with _too_few_servers(config):
        await js.update_stream(config)


@contextmanager
def _too_few_servers(config: api.StreamConfig) -> Generator[None]:
    try:
        yield
    except APIError as error:
        if error.err_code not in _TOO_FEW_SERVERS:
            raise
        name, replicas = config.name or "", config.num_replicas or 1
        may_pass = error.err_code == _NO_PEERS
        said = error.description or ""
        raise TooFewServers(name, replicas, said, may_pass=may_pass) from error


async def find_stream(js: JetStreamContext, name: str) -> api.StreamInfo | None:
    """Return the server's description of a stream, or None."""
    try:
        return await js.stream_info(name)
    except NotFoundError:
        return None


async def _ensure_stream(
    js: JetStreamContext, wanted: api.StreamConfig, service: str
) -> TooFewServers | None:
    """Create or update one stream; return the error if another service's could not be created."""
    name, refusal = wanted.name or "", None
    try:
        await create_stream(js, wanted)
        return None
    except TooFewServers as refused:
        refusal = refused
    except APIError as error:
        if error.err_code != _NAME_IN_USE:
            raise
    if not may_change(service, name):
        return refusal
    found = await find_stream(js, name)
    if found is None:
        if refusal is not None:
            raise refusal
        return None
    changes = {
        field: should_be
        for field, (_, should_be) in differences(found.config, wanted).items()
        if field not in _PROVISIONED
    }
    if changes:
        await update_stream(js, found.config.evolve(**changes))
    return None
