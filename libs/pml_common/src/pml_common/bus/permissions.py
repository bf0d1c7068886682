"""Each service's permissions on the server, derived from the catalog. Pure.

The server refuses everything else: publishing another's message, serving another's queries,
changing or deleting another's stream, reading another's replies. A service that received a request
may reply to it, once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pml_common.bus import names, streams, write_check
from pml_common.bus.payloads import FORMER_STREAM
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer, Service


@dataclass(frozen=True)
class Permissions:
    """Subjects that a service may publish to, and those that it may subscribe to."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def permissions_of(service: Service) -> Permissions:
    """Return the permissions of one service."""
    publish = (
        *(names.filter_of(entry) for entry in catalog.MESSAGES if entry.sender == service),
        *(names.query_subject(each) for each in catalog.QUERIES if service in each.clients),
        *_checking(service),
        *(subject for consumer in _consumers(service) for subject in _consuming(consumer)),
        *_reading(service),
        *_dead_letters(service),
        *_buckets(service),
        *write_check.messages_of(service),
    )
    return Permissions(publish, tuple(_subscriptions(service)))


def _consumers(service: Service) -> Iterator[Consumer[Message]]:
    return (consumer for consumer in catalog.CONSUMERS if consumer.service == service)


def _checking(service: Service) -> Iterator[str]:
    """Reading how streams and consumers are configured; nobody but the operator changes it."""
    yield "$JS.API.INFO"
    for name in streams.used_by(service):
        yield f"$JS.API.STREAM.INFO.{name}"
    for consumer in streams.consumers_used_by(service):
        yield f"$JS.API.CONSUMER.INFO.{streams.stream_of(consumer)}.{consumer.durable}"


def _consuming(consumer: Consumer[Message]) -> Iterator[str]:
    durable = f"{streams.stream_of(consumer)}.{consumer.durable}"
    yield f"$JS.API.CONSUMER.MSG.NEXT.{durable}"
    yield f"$JS.ACK.{durable}.>"
    # To tell whether the server can still read what it has delivered (`stalls`).
    yield f"$JS.API.STREAM.MSG.GET.{streams.stream_of(consumer)}"
    yield names.dead_subject(consumer.durable)


def _reading(service: Service) -> Iterator[str]:
    for reader, owner in catalog.STREAM_READERS:
        if reader == service:
            stream = names.stream_of("evt", owner)
            yield f"$JS.API.DIRECT.GET.{stream}"
            yield f"$JS.API.STREAM.MSG.GET.{stream}"
    for entry in catalog.MESSAGES:
        if entry.until_handled and entry.owner == service:
            yield f"$JS.API.STREAM.MSG.GET.{names.stream_of(entry.kind, entry.owner)}"


def _dead_letters(service: Service) -> Iterator[str]:
    """Dead letters, and what the server gave up that is still in its queue."""
    reader = catalog.GATEWAY_ON_DEAD_LETTER
    if reader.service != service:
        return
    durable = f"{streams.stream_of(reader)}.{reader.durable}"
    yield f"$JS.API.CONSUMER.MSG.NEXT.{durable}"
    yield f"$JS.ACK.{durable}.>"
    queues = (each for each in catalog.MESSAGES if each.is_stored and each.kind != "evt")
    for name in sorted({names.stream_of(each.kind, each.owner) for each in queues}):
        yield f"$JS.API.DIRECT.GET.{name}"


def _buckets(service: Service) -> Iterator[str]:
    """Each service stores bodies of its own, and reads all; the cache has one owner."""
    yield f"{names.bodies_of(service)}.>"
    for stream in (names.PAYLOAD_STREAM, FORMER_STREAM):
        yield f"$JS.API.DIRECT.GET.{stream}"
        yield f"$JS.API.STREAM.MSG.GET.{stream}"
    if service == streams.SHARED_STREAMS_OWNER:
        yield f"$KV.{names.CACHE_BUCKET}.>"
        yield f"$JS.API.DIRECT.GET.{names.CACHE_STREAM}.>"


def _subscriptions(service: Service) -> Iterator[str]:
    yield f"{names.inbox_of(service)}.>"
    answered = [each for each in catalog.QUERIES if each.owner == service]
    yield from (names.query_subject(each) for each in answered)
    if answered:
        yield "$SRV.>"  # requests of the standard tools to a NATS micro service
    yield from (
        names.heard_filter(entry) for listener, entry in catalog.LISTENERS if listener == service
    )
    if all((service, owner) in catalog.STREAM_READERS for owner in catalog.SERVICES):
        yield f"{names.STORED}evt.>"
