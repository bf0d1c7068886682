"""Check that the streams and consumers a service depends on are there, and as configured.

A service creates and changes none: `pml bus provision` does, or the supervisor of the local stack.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError

from pml_common.bus import streams
from pml_common.bus.errors import NotProvisioned
from pml_common.bus.server_api import Config, differences, find, shown
from pml_common.bus.streams import StreamSettings

log = logging.getLogger(__name__)

CHECK_EVERY_S = 30.0
_REPLY_TIMEOUT_S = 1.0
_ADVICE = "`pml bus provision` changes that (docs/streams.md)"
_SAFETY = ("num_replicas", "storage")
"""Fields in which a service tolerates a difference and reports it."""

Info = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """The streams that a service may report on, and what is wrong with all that it depends on."""

    own: Sequence[Info]
    faults: Sequence[str]


def shortfall(found: Sequence[Info], wanted: StreamSettings) -> str | None:
    """Describe how streams are stored less safely than wanted, with advice; else None."""
    fewer: dict[int, list[str]] = defaultdict(list)
    in_memory: list[str] = []
    away: list[str] = []
    for info in found:
        config: Config = info["config"]
        name, replicas = config["name"], config["num_replicas"]
        if replicas < wanted.replicas:
            fewer[replicas].append(name)
        if config["storage"] != wanted.storage:
            in_memory.append(name)
        peers: list[Config] = info.get("cluster", {}).get("replicas") or []
        away += [f"{name} on {peer['name']}" for peer in peers if peer.get("offline")]
    told = [
        f"{has} of {wanted.replicas} configured replicas: {', '.join(names)}; {_ADVICE}"
        for has, names in sorted(fewer.items())
    ]
    if in_memory and wanted.storage == "file":
        told.append(f"stored in memory, not in files as configured: {', '.join(in_memory)}")
    if away:
        told.append(f"replicas offline: {', '.join(away)}")
    return "; ".join(told) or None


def faults_of(name: str, info: Info | None, wanted: Config) -> Iterator[str]:
    """Describe what is wrong with one stream or consumer, a field each."""
    if info is None:
        yield f"{name} does not exist"
        return
    for field, (is_now, should_be) in differences(info["config"], wanted).items():
        if field not in _SAFETY:
            yield f"{name}: {field} is {shown(field, is_now)}, not {shown(field, should_be)}"


class StreamCheck:
    """Checks what a service depends on; one service reports the replicas of each stream."""

    def __init__(self, client: Client, service: str, wanted: StreamSettings) -> None:
        self._client = client
        self._service = service
        self._wanted = wanted
        used = streams.used_by(service)
        self._streams = [each for each in streams.stream_configs(wanted) if each["name"] in used]
        self._consumers = [*streams.consumers_used_by(service)]
        self._reported: str | None = None
        self._next_check = 0.0

    async def require(self) -> None:
        """Raise NotProvisioned unless all is there as configured; NatsError while the server does
        not answer."""
        found = await self._look()
        if found.faults:
            raise NotProvisioned(found.faults)
        self._report(found)

    async def shortfall(self) -> str | None:
        """Return the latest findings, at most 30 s old while the server answers; logs every
        change."""
        now = asyncio.get_running_loop().time()
        if now < self._next_check:
            return self._reported
        self._next_check = now + CHECK_EVERY_S
        try:
            self._report(await self._look())
        except NatsError as error:
            log.debug("streams not checked: %r", error)
        return self._reported

    def _report(self, found: Found) -> None:
        self._next_check = asyncio.get_running_loop().time() + CHECK_EVERY_S
        wrong = str(NotProvisioned(found.faults)) if found.faults else None
        told = filter(None, (wrong, shortfall(found.own, self._wanted)))
        before, self._reported = self._reported, "; ".join(told) or None
        if self._reported is not None and self._reported != before:
            log.warning("streams: %s", self._reported)
        elif before is not None and self._reported is None:
            log.info("streams: stored as configured")

    async def _look(self) -> Found:
        stream_infos = await asyncio.gather(
            *(self._find(f"STREAM.INFO.{each['name']}") for each in self._streams)
        )
        consumer_infos = await asyncio.gather(
            *(
                self._find(f"CONSUMER.INFO.{streams.stream_of(each)}.{each.durable}")
                for each in self._consumers
            )
        )
        faults: list[str] = []
        for info, wanted in zip(stream_infos, self._streams, strict=True):
            faults += faults_of(wanted["name"], info, wanted)
        for info, consumer in zip(consumer_infos, self._consumers, strict=True):
            faults += faults_of(consumer.durable, info, streams.consumer_config(consumer))
        own = [
            each
            for each in stream_infos
            if each is not None and streams.owner_of(each["config"]["name"]) == self._service
        ]
        return Found(own, faults)

    async def _find(self, verb: str) -> Info | None:
        return await find(self._client, verb, _REPLY_TIMEOUT_S)
