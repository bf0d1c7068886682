"""A client with one service's password on the bus, and what the server refuses it."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

from nats.aio.client import Client
from nats.aio.msg import Msg

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.nats_accounts import NatsAccount
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.connection import flush, subscribe

_REFUSED = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"', re.I)


class Intruder:
    """Does with a service's password what the server lets it."""

    def __init__(self) -> None:
        self.client = Client()
        self.refused: dict[str, set[str]] = {"publish": set(), "subscription": set()}

    async def note(self, error: Exception) -> None:
        """Record the server's refusal."""
        if (found := _REFUSED.search(str(error))) is not None:
            self.refused[found[1].lower()].add(found[2].lower())

    async def allowed(self, subjects: Iterable[str], kind: str = "publish") -> list[str]:
        """Publish (or subscribe) to all, and return those that the server did not refuse."""
        tried = [*subjects]
        for subject in tried:
            if kind == "publish":
                await self.client.publish(subject, b"")
            else:
                await subscribe(self.client, subject, _ignore)
        await flush(self.client)
        return [each for each in tried if each.lower() not in self.refused[kind]]

    async def is_refused(self, subject: str, data: bytes) -> None:
        """Publish, and wait until the server has refused that."""
        await self.client.publish(subject, data)
        await eventually(lambda: subject.lower() in self.refused["publish"])

    async def request(self, subject: str, data: bytes, **headers: str) -> bytes:
        """Send a request and return the answer."""
        reply = await self.client.request(
            subject, data, timeout=PATIENCE_S, headers=headers or None
        )
        return reply.data

    async def have_delivered(self, request: str, data: bytes, to: str) -> None:
        """Send a request of the server's API whose answer goes to another subject."""
        await self.client.publish(request, data, reply=to)
        await flush(self.client)


async def _ignore(_: Msg) -> None:
    await asyncio.sleep(0)


@asynccontextmanager
async def connected_as(account: NatsAccount, service: str) -> AsyncGenerator[Intruder]:
    """Connect with the password of a service."""
    intruder = Intruder()
    await intruder.client.connect(
        account.url_of(service), error_cb=intruder.note, inbox_prefix=f"_INBOX.{service}"
    )
    try:
        yield intruder
    finally:
        await intruder.client.close()
