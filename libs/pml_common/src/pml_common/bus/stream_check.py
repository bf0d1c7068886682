"""Check that a service's own streams are stored as safely as configured."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext, api

from pml_common.bus import streams
from pml_common.bus.streams import StreamSettings

log = logging.getLogger(__name__)

CHECK_EVERY_S = 30.0
_REPLY_TIMEOUT_S = 1.0
_ADVICE = "`pml bus provision` changes that (docs/streams.md)"


def shortfall(found: Sequence[api.StreamInfo], wanted: StreamSettings) -> str | None:
    """Describe how streams are stored less safely than wanted, with advice; else None."""
    fewer: dict[int, list[str]] = defaultdict(list)
    in_memory: list[str] = []
    away: list[str] = []
    for info in found:
        name, replicas = info.config.name or "", info.config.num_replicas or 1
        if replicas < wanted.replicas:
            fewer[replicas].append(name)
        if info.config.storage != wanted.storage:
            in_memory.append(name)
        peers = (info.cluster.replicas if info.cluster else None) or []
        away += [f"{name} on {peer.name}" for peer in peers if peer.offline]
    told = [
        f"{has} of {wanted.replicas} configured replicas: {', '.join(names)}; {_ADVICE}"
        for has, names in sorted(fewer.items())
    ]
    if in_memory and wanted.storage == "file":
        told.append(f"stored in memory, not in files as configured: {', '.join(in_memory)}")
    if away:
        told.append(f"replicas offline: {', '.join(away)}")
    return "; ".join(told) or None


class StreamCheck:
    """Checks the streams that a service may change; every stream belongs to one service."""

    def __init__(self, client: Client, service: str, wanted: StreamSettings) -> None:
        self._js = JetStreamContext(client, timeout=_REPLY_TIMEOUT_S)
        self._wanted = wanted
        self._names = [each for each in streams.stream_names() if streams.may_change(service, each)]
        self._reported: str | None = None
        self._next_check = 0.0

    async def shortfall(self) -> str | None:
        """Return the latest shortfall, at most 30 s old while the server answers; logs every
        change."""
        now = asyncio.get_running_loop().time()
        if now < self._next_check:
            return self._reported
        self._next_check = now + CHECK_EVERY_S
        try:
            found = await asyncio.gather(*(self._js.stream_info(name) for name in self._names))
        except NatsError as error:
            log.debug("streams not checked: %r", error)
            return self._reported
        before, self._reported = self._reported, shortfall(found, self._wanted)
        if self._reported is not None and self._reported != before:
            log.warning("streams: %s", self._reported)
        elif before is not None and self._reported is None:
            log.info("streams: stored as configured")
        return self._reported
