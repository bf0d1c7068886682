"""Consumers whose oldest message does not get younger, and messages that the server has lost.

The server keeps a message pending for ever, and says nothing, if its bytes are damaged after it was
delivered and before it was acknowledged (docs/durability.md).
"""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from nats.aio.client import Client
from nats.js import JetStreamContext, api
from nats.js.errors import NotFoundError

from pml_common.bus import measures, names, streams
from pml_common.bus.codec import MSG_ID, Envelope
from pml_common.bus.connection import REPLY_TIMEOUT_S, server_errors
from pml_common.bus.dead_letters import build_dead_letter
from pml_common.bus.identity import Identity
from pml_common.bus.publish import NatsPublisher
from pml_common.bus.unsettled import Unsettled
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer

log = logging.getLogger(__name__)

_MOST_TRIED = 64
"""Sequences tried in one look."""
_TAKES_EFFECT_S = 0.1


@dataclass
class Progress:
    """The oldest message of a consumer, the first after `floor`, up to which everything is
    acknowledged; it has been the same since `since`."""

    floor: int = -1
    since: float = 0.0
    tried: int = 0
    """The last sequence that was tried without effect."""
    skipped: int | None = None
    """A lost sequence that may be acknowledged, and has no dead letter yet."""
    unserved: str | None = None
    """Report of an oldest message whose scope is served elsewhere, or nowhere."""

    def stalled_s(self, floor: int, now: float, *, is_empty: bool) -> float:
        """Return for how long the oldest message has waited, as far as was seen; 0 where none
        does."""
        if is_empty:
            self.floor = -1
        elif floor != self.floor:
            self.floor, self.since, self.tried = floor, now, floor
        return 0.0 if is_empty else now - self.since


class StallWatch:
    """Watches the consumers of one replica."""

    def __init__(
        self,
        client: Client,
        publisher: NatsPublisher,
        identity: Identity,
        unsettled: Unsettled,
        now: Callable[[], datetime],
    ) -> None:
        """`now` is the server's time."""
        self._client = client
        self._js = JetStreamContext(client, timeout=REPLY_TIMEOUT_S)
        self._publisher = publisher
        self._identity = identity
        self._unsettled = unsettled
        self._now = now
        self._watched: list[tuple[Consumer[Message], Progress]] = []

    def add(self, consumer: Consumer[Message]) -> None:
        """Watch a consumer, too."""
        self._watched.append((consumer, Progress()))

    async def stalled(self) -> str | None:
        """Return which consumers wait for the same message for `stalls_after_s`, and for which;
        None if none does. What the server has lost is dead-lettered and skipped. What waits for a
        replica of its scope is no stall, but `unserved`. Raises BusUnavailable."""
        found = await asyncio.gather(*(self._look(*each) for each in self._watched))
        return "; ".join(each for each in found if each is not None) or None

    def unserved(self) -> str | None:
        """Return which consumers waited, when `stalled` last looked, for a message of a scope that
        this replica does not serve; None if none did."""
        found = (progress.unserved for _, progress in self._watched)
        return "; ".join(each for each in found if each is not None) or None

    async def _look(self, consumer: Consumer[Message], progress: Progress) -> str | None:
        progress.unserved = None
        told = await self._look_at_oldest(consumer, progress)
        failing = self._unsettled.failing(consumer.durable, consumer.stalls_after_s)
        if told is not None or failing is None:
            return told
        subject, failed_s = failing
        return f"{consumer.durable} has failed for {failed_s:.0f} s to handle {subject}"

    async def _look_at_oldest(self, consumer: Consumer[Message], progress: Progress) -> str | None:
        stream = streams.stream_of(consumer)
        with server_errors(self._client, f"look at {consumer.durable}"):
            info = await self._js.consumer_info(stream, consumer.durable)
            floor, now = _floor(info), asyncio.get_running_loop().time()
            if progress.skipped is not None and floor >= progress.skipped:
                return await self._bury(consumer, progress, progress.skipped)
            is_empty = not (info.num_ack_pending or info.num_pending)
            waited_s = progress.stalled_s(floor, now, is_empty=is_empty)
            subjects = names.filter_of(consumer.message)
            oldest = None if is_empty else await self._next(stream, floor, subjects)
            self._measure(consumer, oldest)
            if is_empty or waited_s < consumer.stalls_after_s:
                return None
            if info.num_ack_pending:
                delivered = info.delivered.stream_seq if info.delivered else 0
                before = oldest.sequence if oldest else delivered + 1
                told = await self._skip(consumer, progress, range(progress.tried + 1, before))
                if told is not None:
                    return told
        which = f"{stream}/{oldest.sequence}" if oldest else f"what follows {stream}/{floor}"
        told = f"{consumer.durable} has waited {waited_s:.0f} s for {which}"
        scope = self._unsettled.left_scope(consumer.durable, oldest.subject) if oldest else None
        if scope is None:
            return told
        progress.unserved = f"{told}, which is for a {consumer.service} of {scope}"
        return None

    def _measure(self, consumer: Consumer[Message], oldest: "_Oldest | None") -> None:
        age_s = (self._now() - oldest.stored_at).total_seconds() if oldest else 0.0
        measures.pending_age.set(max(0.0, age_s), consumer.durable)

    async def _next(self, stream: str, after: int, subjects: str) -> "_Oldest | None":
        """Return the next message on these subjects that can be read."""
        body = json.dumps({"seq": after + 1, "next_by_subj": subjects}).encode()
        subject = f"$JS.API.STREAM.MSG.GET.{stream}"
        answer = json.loads((await self._client.request(subject, body, REPLY_TIMEOUT_S)).data)
        if "message" not in answer:
            return None
        found = answer["message"]
        return _Oldest(found["seq"], found["subject"], datetime.fromisoformat(found["time"]))

    async def _skip(
        self, consumer: Consumer[Message], progress: Progress, candidates: Sequence[int]
    ) -> str | None:
        """Acknowledge the first message that blocks the consumer and cannot be read; return what to
        tell. What can be read is left alone, and acknowledging what is not pending has no
        effect."""
        stream = streams.stream_of(consumer)
        for sequence in candidates[:_MOST_TRIED]:
            try:
                await self._js.get_msg(stream, sequence)
            except NotFoundError:
                progress.skipped = sequence  # before it is: what follows may be cut off
                await self._client.publish(
                    f"$JS.ACK.{stream}.{consumer.durable}.1.{sequence}.{sequence}.0.0", b"+ACK"
                )
                await asyncio.sleep(_TAKES_EFFECT_S)
                info = await self._js.consumer_info(stream, consumer.durable)
                if _floor(info) >= sequence:
                    return await self._bury(consumer, progress, sequence)
                progress.skipped = None
            progress.tried = sequence
        return None

    async def _bury(self, consumer: Consumer[Message], progress: Progress, sequence: int) -> str:
        """Store the dead letter of a message that was skipped; return what to tell."""
        lost = f"{streams.stream_of(consumer)}/{sequence}"
        reason = f"the server has lost {lost}: its stored bytes are damaged, or were deleted"
        log.error("%s: %s", consumer.durable, reason)
        letter = build_dead_letter(consumer, self._identity, Envelope(lost, b"", {}), reason, 0)
        headers = {**letter.headers, MSG_ID: f"{consumer.durable}/{lost}"}
        await self._publisher.store(letter.subject, letter.data, headers)
        progress.skipped = None
        return f"{consumer.durable}: {lost} was lost, and is skipped"


class _Oldest(NamedTuple):
    sequence: int
    subject: str
    stored_at: datetime


def _floor(info: api.ConsumerInfo) -> int:
    return info.ack_floor.stream_seq if info.ack_floor else 0
