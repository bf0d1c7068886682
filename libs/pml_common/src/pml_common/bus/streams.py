"""What exists on the server, derived from the catalogue and created idempotently."""
# nats-py leaves its **params untyped:
# pyright: reportUnknownMemberType=false

import asyncio

from nats.js import JetStreamContext, api
from nats.js.errors import BadRequestError

from pml_common.bus import names
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer, Service

DAY = 24 * 3600.0
MESSAGE_AGE_S = 7 * DAY
PAYLOAD_AGE_S = 2 * MESSAGE_AGE_S
"""Twice a message's, so that one stored again after a week may share a body already kept."""
MEMO_AGE_S = 7 * DAY
DEAD_AGE_S = 30 * DAY
DUPLICATE_WINDOW_S = 300.0
MAX_ACK_PENDING = 1000
"""Deliveries of one consumer without an ack, waiting retries included: what bounds a bad day."""
_NAME_IN_USE = 10058


def stream_configs(replicas: int) -> list[api.StreamConfig]:
    """Every stream: one per owner and kind that has messages, one for the dead."""
    subjects = {
        names.stream_of(entry.kind, entry.owner): [names.stream_subjects(entry.kind, entry.owner)]
        for entry in catalog.MESSAGES
    }
    work = {
        names.stream_of("cmd", entry.owner) for entry in catalog.MESSAGES if entry.kind == "cmd"
    }
    subjects[names.DEAD_STREAM] = [names.DEAD_SUBJECTS, f"{names.MAX_DELIVERIES_ADVISORIES}.>"]
    return [
        api.StreamConfig(
            name=name,
            subjects=stored,
            retention=(
                api.RetentionPolicy.WORK_QUEUE if name in work else api.RetentionPolicy.LIMITS
            ),
            max_age=DEAD_AGE_S if name == names.DEAD_STREAM else MESSAGE_AGE_S,
            storage=api.StorageType.FILE,
            num_replicas=replicas,
            duplicate_window=DUPLICATE_WINDOW_S,
            allow_direct=True,
        )
        for name, stored in subjects.items()
    ]


def consumer_config(consumer: Consumer[Message]) -> api.ConsumerConfig:
    """A durable pull consumer; its retries are spaced by delayed refusals, not by the server."""
    return api.ConsumerConfig(
        name=consumer.durable,
        durable_name=consumer.durable,
        filter_subject=names.filter_of(consumer.message),
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=consumer.ack_wait_s,
        max_deliver=consumer.max_deliver,
        max_ack_pending=MAX_ACK_PENDING,
    )


def stream_of(consumer: Consumer[Message]) -> str:
    """The stream a consumer reads."""
    return names.stream_of(consumer.message.kind, consumer.message.owner)


KEEPER: Service = "gateway"
"""Changes the streams that no service owns: dead letters and buckets."""


def changed_by(service: str, stream: str) -> bool:
    """Whether a service may change a stream that exists: its owner may."""
    owned = {names.stream_of(entry.kind, entry.owner): entry.owner for entry in catalog.MESSAGES}
    return owned.get(stream, KEEPER) == service


async def ensure_all(js: JetStreamContext, service: str, replicas: int) -> None:
    """Create the streams that are missing, as any service may start first; change those of the
    service's own that differ, and create or change its consumers."""
    await asyncio.gather(
        *(_ensure_stream(js, config, service) for config in stream_configs(replicas)),
        _ensure_payloads(js, replicas, service),
        _ensure_memos(js, replicas, service),
    )
    own = (consumer for consumer in catalog.CONSUMERS if consumer.service == service)
    await asyncio.gather(*(ensure_consumer(js, consumer) for consumer in own))


async def ensure_consumer(js: JetStreamContext, consumer: Consumer[Message]) -> None:
    """Create or change one durable consumer."""
    await js.add_consumer(stream_of(consumer), consumer_config(consumer))


async def _ensure_stream(js: JetStreamContext, config: api.StreamConfig, service: str) -> None:
    try:
        await js.add_stream(config)
    except BadRequestError as error:
        if error.err_code != _NAME_IN_USE:
            raise
        if changed_by(service, config.name or ""):
            await js.update_stream(config)


async def _ensure_payloads(js: JetStreamContext, replicas: int, service: str) -> None:
    try:
        await js.create_object_store(
            names.PAYLOAD_BUCKET,
            api.ObjectStoreConfig(ttl=PAYLOAD_AGE_S, replicas=replicas),
        )
    except BadRequestError as error:
        if error.err_code != _NAME_IN_USE:
            raise
        if service != KEEPER:
            return
        config = (await js.stream_info(f"OBJ_{names.PAYLOAD_BUCKET}")).config
        config.max_age, config.num_replicas = PAYLOAD_AGE_S, replicas
        await js.update_stream(config)


async def _ensure_memos(js: JetStreamContext, replicas: int, service: str) -> None:
    try:
        await js.create_key_value(
            api.KeyValueConfig(
                bucket=names.MEMO_BUCKET, ttl=MEMO_AGE_S, replicas=replicas, direct=True
            )
        )
    except BadRequestError as error:
        if error.err_code != _NAME_IN_USE:
            raise
        if service != KEEPER:
            return
        config = (await js.stream_info(f"KV_{names.MEMO_BUCKET}")).config
        config.max_age, config.num_replicas = MEMO_AGE_S, replicas
        await js.update_stream(config)
