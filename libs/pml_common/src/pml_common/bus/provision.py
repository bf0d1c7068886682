"""Provisioning: creates streams, buckets and consumers, or updates them to the configuration."""
# nats-py leaves its **params untyped:
# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Literal

from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NotFoundError

from pml_common.bus import connection, names, streams
from pml_common.bus.errors import TooFewServers
from pml_common.bus.streams import StreamSettings
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer, DeadLetterConsumer

COPIED_WITHIN_S = 30.0
_POLL_S = 0.1
_FIXED = ("storage", "retention")
"""Fields that the server cannot change in an existing stream."""
_OF_CONSUMERS = ("filter_subject", "ack_wait", "max_deliver", "max_ack_pending")

State = Literal["created", "changed", "unchanged", "failed"]


@dataclass(frozen=True)
class Change:
    """One field's current and wanted value."""

    was: object
    wanted: object


@dataclass(frozen=True)
class Provisioned:
    """The result for one stream, bucket or consumer: what was or would be changed, and what
    remains to be done (`problem`)."""

    name: str
    state: State
    changes: Mapping[str, Change] = field(default_factory=dict[str, Change])
    problem: str | None = None


@dataclass(frozen=True)
class Plan:
    """The wanted settings; `may_lower` allows removing replicas. A dry run changes nothing."""

    wanted: StreamSettings
    may_lower: bool = True
    dry_run: bool = False


class Provisioner:
    """Applies a plan; idempotent. Needs a user that may change every stream: the operator's."""

    def __init__(self, js: JetStreamContext, plan: Plan) -> None:
        self._js = js
        self._plan = plan

    async def provision(self, copied_within_s: float = COPIED_WITHIN_S) -> list[Provisioned]:
        """Provision streams and buckets, then their consumers. Waits until new replicas have
        caught up, and reports those that take longer than `copied_within_s`."""
        end = asyncio.get_running_loop().time() + copied_within_s
        done = [await self._stream(config) for config in streams.stream_configs(self._plan.wanted)]
        done = [await self._copied(each, partial(self._group_of, each.name), end) for each in done]
        there = {each.name for each in done if each.state != "failed"}
        for consumer in (*catalog.CONSUMERS, catalog.GATEWAY_ON_DEAD_LETTER):
            if (stream := streams.stream_of(consumer)) in there:
                group = partial(self._group_of, stream, consumer.durable)
                done.append(await self._copied(await self._consumer(consumer), group, end))
        return done

    async def _group_of(self, stream: str, durable: str | None = None) -> Sequence[str] | None:
        """Return the servers whose replica of a stream or consumer is behind; None while it has
        fewer replicas than its stream is configured for."""
        info = await self._js.stream_info(stream)
        replicas = info.config.num_replicas or 1
        cluster = info.cluster
        if durable is not None:
            cluster = (await self._js.consumer_info(stream, durable)).cluster
        peers = (cluster.replicas if cluster else None) or []
        if len(peers) + 1 < replicas:
            return None
        return [peer.name or "" for peer in peers if peer.offline or not peer.current]

    async def _stream(self, wanted: api.StreamConfig) -> Provisioned:
        name = wanted.name or ""
        found = await streams.find_stream(self._js, name)
        if found is None:
            return await self._carry_out(
                Provisioned(name, "created"), lambda: streams.create_stream(self._js, wanted)
            )
        if (
            not self._plan.may_lower
            and (found.config.num_replicas or 1) > self._plan.wanted.replicas
        ):
            wanted = wanted.evolve(num_replicas=found.config.num_replicas)
        differing = streams.differences(found.config, wanted)
        fixed = [_fixed(name, each, *differing[each]) for each in _FIXED if each in differing]
        changes = {each: pair for each, pair in differing.items() if each not in _FIXED}
        planned = Provisioned(
            name,
            "changed" if changes else "unchanged",
            {each: Change(_plain(was), _plain(to)) for each, (was, to) in changes.items()},
            "; ".join(fixed) or None,
        )
        new = found.config.evolve(**{each: to for each, (_, to) in changes.items()})
        return await self._carry_out(planned, lambda: streams.update_stream(self._js, new))

    async def _consumer(self, consumer: Consumer[Message] | DeadLetterConsumer) -> Provisioned:
        stream = streams.stream_of(consumer)
        name = f"{stream} > {consumer.durable}"
        wanted = streams.consumer_config(consumer)
        try:
            found = (await self._js.consumer_info(stream, consumer.durable)).config
        except NotFoundError:
            planned = Provisioned(name, "created")
        else:
            changes = {
                each: Change(getattr(found, each), getattr(wanted, each))
                for each in _OF_CONSUMERS
                if getattr(found, each) != getattr(wanted, each)
            }
            if found.num_replicas:
                changes["num_replicas"] = Change(found.num_replicas, "its stream's")
            planned = Provisioned(name, "changed" if changes else "unchanged", changes)
        return await self._carry_out(planned, lambda: streams.ensure_consumer(self._js, consumer))

    async def _carry_out(
        self, planned: Provisioned, change: Callable[[], Awaitable[None]]
    ) -> Provisioned:
        """Carry out a planned change; return it, as failed with the reason if it fails."""
        if self._plan.dry_run or planned.state not in ("created", "changed"):
            return planned
        try:
            await change()
        except (TooFewServers, APIError) as error:
            told = error.description if isinstance(error, APIError) else None
            return replace(planned, state="failed", problem=told or str(error))
        return planned

    async def _copied(
        self,
        done: Provisioned,
        behind: Callable[[], Awaitable[Sequence[str] | None]],
        end: float,
    ) -> Provisioned:
        """Return `done`, with a problem added if replicas are behind at the loop's time `end`."""
        if self._plan.dry_run or done.state == "failed":
            return done
        while (late := await behind()) is None or late:
            if asyncio.get_running_loop().time() >= end:
                said = f"still being copied to {', '.join(late or ('its new replicas',))}"
                problem = "; ".join(filter(None, (done.problem, f"{said}: run this again")))
                return replace(done, problem=problem)
            await asyncio.sleep(_POLL_S)
        return done


@asynccontextmanager
async def provisioner(
    url: str, plan: Plan, patience_s: float = connection.PATIENCE_S
) -> AsyncGenerator[Provisioner]:
    """Connect a provisioner to the servers at `url`. Raises, here and inside the block,
    BusUnavailable if they do not answer and BusError if they refuse."""

    async def reconnected() -> None:
        pass

    inbox = names.inbox_of("operator")
    client = await connection.connect(url, "pml-provision", reconnected, patience_s, inbox=inbox)
    try:
        with connection.server_errors(client, "provision"):
            js = JetStreamContext(client, timeout=connection.REPLY_TIMEOUT_S)
            yield Provisioner(js, plan)
    finally:
        await client.close()


def _fixed(name: str, what: str, was: object, wanted: object) -> str:
    return (
        f"{what} stays {_plain(was)}: the server cannot make it {_plain(wanted)} in a stream that "
        f"exists. Let every workflow end, stop the services, delete the stream (`nats stream rm "
        f"{name}`: its messages are lost) and run this again"
    )


def _plain(value: object) -> object:
    return value.value if isinstance(value, Enum) else value
