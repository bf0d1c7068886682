"""Messages that no service published: garbage, forgeries, repetitions, in any order."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import cast
from uuid import UUID, uuid4

from nats.js import JetStreamContext
from nats.js.api import RawStreamMsg
from nats.js.errors import APIError, NotFoundError

from pml_common.bus import names
from pml_common.bus.codec import EXPECTED_LAST, EXPECTED_ON, MSG_ID, PAYLOAD
from pml_common.bus.identity import SIGNATURE
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import CONSUMERS, MESSAGES, TRACE_RECORDED, MessageType
from tests.crashes.crash_stack import SCOPE
from tests.faults.site import Site

LOOK_BACK = 120
"""Number of messages of a stream in which the last of a type are searched."""
FORGED = "a message of it with a signature that does not fit"
STORED_BY_SERVER = ("Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp")
BODIES: Mapping[str, tuple[bytes, Mapping[str, str]]] = {
    "not JSON": (b"not json", {}),
    "an empty object": (b"{}", {}),
    "a body that is gone": (b"", {PAYLOAD: "0" * 64}),
    "the wrong fields": (json.dumps({"workflow_id": 7, "entries": "none"}).encode(), {}),
    "nothing": (b"", {}),
}


@dataclass(frozen=True)
class Poison:
    """Publishes seeded poison to a site, as the operator, who may do everything."""

    site: Site
    chance: Random
    js: JetStreamContext

    @property
    def kinds(self) -> Mapping[str, Callable[[], Awaitable[str]]]:
        """Each kind of poison; each returns a description."""
        return {
            "garbage": self.garbage,
            "forged": self.forged,
            "journal": self.journal,
            "doubled journal": self.doubled_journal,
            "repeated": self.repeated,
            "shuffled": self.shuffled,
        }

    async def garbage(self) -> str:
        """Publish invalid bodies on the subjects of consumers, for running workflows and for
        unknown ones."""
        consumers = self.chance.sample(CONSUMERS, 4)
        for consumer in consumers:
            body, headers = BODIES[self.chance.choice(list(BODIES))]
            for entity in (str(uuid4()), str(self._running() or uuid4())):
                subject = names.subject_of(consumer.message, SCOPE, entity)
                self._spoil(subject, "garbage on a consumer's subject")
                await self._publish(subject, body, {MSG_ID: str(uuid4()), **headers})
        return f"on the subjects of {', '.join(consumer.durable for consumer in consumers)}"

    async def forged(self) -> str:
        """Publish stored messages again under new ids: unsigned, wrongly signed, changed."""
        signed = [entry for entry in MESSAGES if entry.signed]
        count = 0
        for entry in self.chance.sample(signed, 4):
            for stored in await self._last(entry, 2):
                headers = {**_own_headers(stored), MSG_ID: str(uuid4())}
                if self.chance.random() < 0.5:
                    headers.pop(SIGNATURE, None)
                self._spoil(stored.subject or "", FORGED)
                await self._publish(stored.subject or "", stored.data or b"", headers)
                count += 1
        return f"{count} messages"

    async def journal(self) -> str:
        """Publish garbage into the journal of a running workflow."""
        workflow = self._running()
        if workflow is None:
            return "nothing is running"
        name = self.chance.choice(list(BODIES))
        body, headers = BODIES[name]
        subject = names.subject_of(TRACE_RECORDED, SCOPE, str(workflow))
        self._spoil(subject, "garbage in its journal")
        await self._publish(subject, body, {MSG_ID: str(uuid4()), **headers})
        return f"{name} for {self.site.under_way.get(workflow, workflow)}"

    async def doubled_journal(self) -> str:
        """Publish the last append of a running workflow again."""
        workflow = self._running()
        if workflow is None:
            return "nothing is running"
        subject = names.subject_of(TRACE_RECORDED, SCOPE, str(workflow))
        try:
            stored = await self.js.get_last_msg(_stream(TRACE_RECORDED), subject)
        except NotFoundError:
            return "its journal is empty"
        self._spoil(subject, "an append to its journal repeated")
        await self._publish(
            subject, stored.data or b"", {**_own_headers(stored), MSG_ID: str(uuid4())}
        )
        return f"of {self.site.under_way.get(workflow, workflow)}"

    async def repeated(self) -> str:
        """Publish stored messages again, with their headers, under the same id and under
        another."""
        count = 0
        for entry in self._not_journals():
            for stored in await self._last(entry, 2):
                for headers in ({}, {MSG_ID: str(uuid4())}):
                    own = {**_own_headers(stored), **headers}
                    if headers and entry.signed:
                        self._spoil(stored.subject or "", FORGED)
                    await self._publish(stored.subject or "", stored.data or b"", own)
                    count += 1
        return f"{count} messages"

    async def shuffled(self) -> str:
        """Publish the last messages of every kind again under other ids, in any order."""
        found = [stored for entry in self._not_journals() for stored in await self._last(entry, 5)]
        self.chance.shuffle(found)
        for stored in found:
            headers = {**_own_headers(stored), MSG_ID: str(uuid4())}
            if SIGNATURE in headers:
                self._spoil(stored.subject or "", FORGED)
            await self._publish(stored.subject or "", stored.data or b"", headers)
        return f"{len(found)} messages"

    def _spoil(self, subject: str, how: str) -> None:
        """Record the poisoned workflow, if it is running."""
        entity = names.parse_subject(subject).entity
        for workflow in self.site.under_way:
            if str(workflow) == entity:
                self.site.poisoned.setdefault(workflow, how)

    def _running(self) -> UUID | None:
        """A running workflow that is not poisoned yet."""
        running = [one for one in self.site.under_way if one not in self.site.poisoned]
        return self.chance.choice(running) if running else None

    def _not_journals(self) -> Sequence[MessageType[Message]]:
        return [entry for entry in MESSAGES if entry is not TRACE_RECORDED]

    async def _last(self, entry: MessageType[Message], count: int) -> list[RawStreamMsg]:
        """Up to `count` of the last messages of a type, oldest first."""
        found = list[RawStreamMsg]()
        stream = _stream(entry)
        last = (await self.js.stream_info(stream)).state.last_seq
        for sequence in range(last, max(0, last - LOOK_BACK), -1):
            try:
                stored = await self.js.get_msg(stream, sequence)
            except (NotFoundError, APIError):
                continue
            if (stored.subject or "").startswith(f"{names.prefix_of(entry)}."):
                found.insert(0, stored)
            if len(found) == count:
                break
        return found

    async def _publish(self, subject: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Publish it and record its sequence; a deduplicated one belongs to another."""
        stored = await self.js.publish(subject, body, headers=dict(headers))
        if not stored.duplicate:
            self.site.poison.add((stored.stream, stored.seq))


def _stream(entry: MessageType[Message]) -> str:
    return names.stream_of(entry.kind, entry.owner)


def _own_headers(stored: RawStreamMsg) -> dict[str, str]:
    """The published headers, without those that the server adds and those that order journals."""
    left_out = (*STORED_BY_SERVER, EXPECTED_LAST, EXPECTED_ON)
    headers = cast("dict[str, str]", stored.headers or {})  # pyright: ignore[reportUnknownMemberType] - a bare dict
    return {name: value for name, value in headers.items() if name not in left_out}
