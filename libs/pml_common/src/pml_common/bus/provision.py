"""Provisioning: creates streams, buckets and consumers, or updates them to the configuration."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from nats.aio.client import Client
from nats.js.errors import APIError

from pml_common.bus import connection, names, streams
from pml_common.bus.errors import BusUnavailable
from pml_common.bus.server_api import (
    Config,
    Differences,
    ask,
    differences,
    find,
    shown,
    updated,
)
from pml_common.bus.streams import AnyConsumer, StreamSettings

COPIED_WITHIN_S = 30.0
_POLL_S = 0.1
_AGAIN_S = 1.0
_FIXED = ("storage", "retention")
"""Fields that the server cannot change in an existing stream."""
_TOO_FEW_SERVERS = (10005, 10074)

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

    def __init__(self, client: Client, plan: Plan) -> None:
        self._client = client
        self._plan = plan

    async def provision(self, copied_within_s: float = COPIED_WITHIN_S) -> list[Provisioned]:
        """Provision streams and buckets, then their consumers. Waits until new replicas have
        caught up, and reports those that take longer than `copied_within_s`."""
        end = asyncio.get_running_loop().time() + copied_within_s
        wanted = streams.stream_configs(self._plan.wanted)
        done = await asyncio.gather(*(self._stream(config, end) for config in wanted))
        states = {each.name: each.state for each in done}
        consumers = (
            self._consumer(each, end, is_new=states[streams.stream_of(each)] == "created")
            for each in streams.ALL_CONSUMERS
            if states[streams.stream_of(each)] != "failed"
        )
        return [*done, *await asyncio.gather(*consumers)]

    async def _stream(self, wanted: Config, end: float) -> Provisioned:
        name, settings = wanted["name"], self._plan.wanted
        group = partial(self._group_of, name)
        found = await find(self._client, f"STREAM.INFO.{name}")
        if found is None:
            planned = Provisioned(name, "created")
            return await self._carry_out(planned, f"STREAM.CREATE.{name}", wanted, group, end)
        config: Config = found["config"]
        if not self._plan.may_lower and config["num_replicas"] > settings.replicas:
            wanted = {**wanted, "num_replicas": config["num_replicas"]}
        differing = differences(config, wanted)
        fixed = [_fixed(name, each, *differing[each]) for each in _FIXED if each in differing]
        changes = {each: pair for each, pair in differing.items() if each not in _FIXED}
        planned = Provisioned(
            name,
            "changed" if changes else "unchanged",
            _changes(changes),
            "; ".join(fixed) or None,
        )
        new = updated(config, changes)
        return await self._carry_out(planned, f"STREAM.UPDATE.{name}", new, group, end)

    async def _consumer(self, consumer: AnyConsumer, end: float, *, is_new: bool) -> Provisioned:
        stream, durable = streams.stream_of(consumer), consumer.durable
        name, wanted = f"{stream} > {durable}", streams.consumer_config(consumer)
        new = wanted
        where = f"CONSUMER.INFO.{stream}.{durable}"
        found = None if is_new else await find(self._client, where)
        if found is None:
            planned = Provisioned(name, "created")
        else:
            changes = differences(found["config"], wanted)
            new = updated(found["config"], changes)
            state: State = "changed" if changes else "unchanged"
            planned = Provisioned(name, state, _changes(changes))
        verb, body = streams.creation_of(consumer, new)
        group = partial(self._group_of, stream, durable)
        return await self._carry_out(planned, verb, body, group, end)

    async def _carry_out(
        self, planned: Provisioned, verb: str, body: Config, group: "_Group", end: float
    ) -> Provisioned:
        """Carry out a planned change; return it, as failed with the reason if it fails, with a
        problem if its replicas are behind."""
        if self._plan.dry_run:
            return planned
        if planned.state in ("created", "changed"):
            try:
                await ask(self._client, verb, body)
            except APIError as error:
                problem = error.description or str(error)
                if planned.state == "changed":
                    problem = f"the server refuses that: {problem}. {_remedy(planned.name)}"
                if error.err_code in _TOO_FEW_SERVERS:
                    problem = _too_few_servers(body["num_replicas"], problem)
                return replace(planned, state="failed", problem=problem)
        return await self._copied(planned, group, end)

    async def _group_of(self, stream: str, durable: str | None = None) -> Sequence[str] | None:
        """Return the servers whose replica of a stream or consumer is behind; None while it has
        fewer replicas than its stream is configured for."""
        info = await ask(self._client, f"STREAM.INFO.{stream}")
        replicas: int = info["config"]["num_replicas"]
        if durable is not None:
            info = await ask(self._client, f"CONSUMER.INFO.{stream}.{durable}")
        peers: list[Config] = info.get("cluster", {}).get("replicas") or []
        if len(peers) + 1 < replicas:
            return None
        return [peer["name"] for peer in peers if peer.get("offline") or not peer.get("current")]

    async def _copied(
        self,
        done: Provisioned,
        behind: "_Group",
        end: float,
    ) -> Provisioned:
        """Return `done`, with a problem added if replicas are behind at the loop's time `end`."""
        if self._plan.wanted.replicas == 1 and self._plan.may_lower:
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
            yield Provisioner(client, plan)
    finally:
        await client.close()


async def provision_until(url: str, plan: Plan, patience_s: float) -> list[Provisioned]:
    """Provision, again and again for `patience_s` while something remains to be done: the servers
    of a cluster may not all have started. Raises BusError."""
    give_up = asyncio.get_running_loop().time() + patience_s
    while True:
        left = max(1.0, give_up - asyncio.get_running_loop().time())
        try:
            async with provisioner(url, plan, left) as run:
                done = await run.provision()
            late = asyncio.get_running_loop().time() >= give_up
            if late or all(each.problem is None for each in done):
                return done
        except BusUnavailable:
            if asyncio.get_running_loop().time() >= give_up:
                raise
        await asyncio.sleep(_AGAIN_S)


_Group = Callable[[], Awaitable[Sequence[str] | None]]


def _changes(differing: Differences) -> Mapping[str, Change]:
    return {
        each: Change(shown(each, was), shown(each, to)) for each, (was, to) in differing.items()
    }


def _too_few_servers(replicas: int, said: str) -> str:
    return (
        f"cannot have {replicas} replicas on the available servers ({said}): start more NATS "
        "servers, as one cluster, or configure fewer replicas (PML_STREAM_REPLICAS)"
    )


def _fixed(name: str, what: str, was: object, wanted: object) -> str:
    said = f"{what} stays {was}: the server cannot make it {wanted} in a stream that exists"
    return f"{said}. {_remedy(name)}"


def _remedy(name: str) -> str:
    """Say how a stream, or a consumer (`stream > durable`), that cannot change is made anew."""
    stream, _, durable = name.partition(" > ")
    if durable:
        return (
            f"Stop the services, delete the consumer (`nats consumer rm {stream} {durable}`: what "
            "is stored is delivered again) and run this again"
        )
    return (
        f"Let every workflow end, stop the services, delete the stream (`nats stream rm {stream}`: "
        "its messages are lost) and run this again"
    )
