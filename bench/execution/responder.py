"""A process that echoes the messages of a subject: `responder.py URL SUBJECT`."""

import asyncio
import sys

from nats.aio.client import Client
from nats.aio.msg import Msg

from pml_common.bus.connection import subscribe


async def respond(url: str, subject: str) -> None:
    """Echo until terminated."""
    client = Client()
    await client.connect(url)

    async def echo(message: Msg) -> None:
        await message.respond(message.data)

    await subscribe(client, subject, echo)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(respond(*sys.argv[1:]))
