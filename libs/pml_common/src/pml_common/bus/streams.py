"""Streams and consumers as the server should have them, derived from the catalog. Pure."""
# nats-py leaves its **params untyped:
# pyright: reportUnknownMemberType=false

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from nats.js import api

from pml_common.bus import names
from pml_common.bus.server_api import Config
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
UNLIMITED = -1
"""No such bound: at it, messages of a scope without a replica would keep those of others back."""
MAX_REPLICAS = 5
"""The server's own limit."""
Storage = Literal["file", "memory"]
AnyConsumer = Consumer[Message] | DeadLetterConsumer
ALL_CONSUMERS: tuple[AnyConsumer, ...] = (*catalog.CONSUMERS, catalog.GATEWAY_ON_DEAD_LETTER)

_RETENTION: Mapping[str | None, api.RetentionPolicy] = {
    "cmd": api.RetentionPolicy.WORK_QUEUE,
    "run": api.RetentionPolicy.INTEREST,
}


@dataclass(frozen=True)
class StreamSettings:
    """Replication and storage of every stream and bucket; consumers inherit their stream's."""

    replicas: int = 1
    storage: Storage = "file"


DEFAULTS: Final = StreamSettings()


def stream_configs(settings: StreamSettings) -> list[Config]:
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
    return [
        _sent(each.evolve(num_replicas=settings.replicas, storage=storage).as_dict())
        for each in kept
    ]


def _sent(config: Mapping[str, object]) -> Config:
    """Return a configuration as it is sent, without nats-py's enumerations."""
    return {
        name: value.value if isinstance(value, Enum) else value for name, value in config.items()
    }


def _republished(subjects: list[str]) -> api.RePublish:
    """Configure that a stream's events are heard once they are stored."""
    [published] = subjects
    return api.RePublish(src=published, dest=names.stored_subject(published))


def stream_names() -> list[str]:
    """Return the names of all streams."""
    return [config["name"] for config in stream_configs(DEFAULTS)]


def _payload_bucket() -> api.StreamConfig:
    """Configure the stream of large bodies: one message a subject, which nothing replaces."""
    return api.StreamConfig(
        name=names.PAYLOAD_STREAM,
        subjects=[names.PAYLOAD_SUBJECTS],
        max_age=PAYLOAD_AGE_S,
        max_msgs_per_subject=1,
        discard=api.DiscardPolicy.NEW,
        discard_new_per_subject=True,
        duplicate_window=DUPLICATE_WINDOW_S,
        allow_direct=True,
        allow_msg_ttl=True,  # for write checks
    )


def _cache_bucket() -> api.StreamConfig:
    """Configure the stream of a key-value bucket as nats-py does, without roll-up, by which one
    message may empty it."""
    return api.StreamConfig(
        name=names.CACHE_STREAM,
        subjects=[f"$KV.{names.CACHE_BUCKET}.>"],
        max_age=CACHE_AGE_S,
        max_msgs_per_subject=1,
        duplicate_window=120.0,
        discard=api.DiscardPolicy.NEW,
        allow_direct=True,
        allow_msg_ttl=True,
        deny_delete=True,
    )


def consumer_config(consumer: AnyConsumer) -> Config:
    """Configure a durable pull consumer; retries are delayed by naks, not by the server."""
    is_plain = isinstance(consumer, Consumer)
    config = api.ConsumerConfig(
        name=consumer.durable,
        durable_name=consumer.durable,
        filter_subject=names.filter_of(consumer.message) if is_plain else None,
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=consumer.ack_wait_s,
        max_deliver=consumer.max_deliver,
        max_ack_pending=UNLIMITED if consumer.in_scope else MAX_ACK_PENDING,
    )
    return _sent(config.as_dict())


def stream_of(consumer: AnyConsumer) -> str:
    """Return the stream that a consumer reads."""
    if isinstance(consumer, DeadLetterConsumer):
        return names.DEAD_STREAM
    return names.stream_of(consumer.message.kind, consumer.message.owner)


def creation_of(consumer: AnyConsumer, config: Config) -> tuple[str, Config]:
    """Return the request that creates or updates a consumer: its verb and its body."""
    stream = stream_of(consumer)
    filtered = f".{config['filter_subject']}" if "filter_subject" in config else ""
    verb = f"CONSUMER.CREATE.{stream}.{consumer.durable}{filtered}"
    return verb, {"stream_name": stream, "config": config}


SHARED_STREAMS_OWNER: Service = "gateway"
"""The service that reports on the streams without an owner, and has the cache."""


def owner_of(stream: str) -> str:
    """Return the service that reports on a stream's replicas: its owner."""
    owned = {names.stream_of(entry.kind, entry.owner): entry.owner for entry in catalog.MESSAGES}
    return owned.get(stream, SHARED_STREAMS_OWNER)


def used_by(service: str) -> list[str]:
    """Return the streams that a service depends on: what it publishes, consumes, reads, and where
    its dead letters and large bodies go."""
    published = (
        names.stream_of(each.kind, each.owner)
        for each in catalog.MESSAGES
        if each.is_stored and service in (each.sender, each.owner)
    )
    consumed = [stream_of(each) for each in consumers_used_by(service)]
    read = (
        names.stream_of("evt", owner)
        for reader, owner in catalog.STREAM_READERS
        if reader == service
    )
    shared = [names.DEAD_STREAM] if consumed else []
    cache = [names.CACHE_STREAM] if service == SHARED_STREAMS_OWNER else []
    return sorted({*published, *consumed, *read, *shared, *cache, names.PAYLOAD_STREAM})


def consumers_used_by(service: str) -> Iterator[AnyConsumer]:
    """Yield the consumers that a service depends on: its own, and all of what it publishes to be
    kept until it is handled, else a message could come before one of its consumers."""
    for consumer in ALL_CONSUMERS:
        waited_for = (
            not isinstance(consumer, DeadLetterConsumer)
            and consumer.message.until_handled
            and consumer.message.owner == service
        )
        if consumer.service == service or waited_for:
            yield consumer
