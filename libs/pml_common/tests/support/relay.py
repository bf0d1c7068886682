"""A process between two sockets that passes on every byte; prints how many it sent to the server.

`python -m libs.pml_common.tests.support.relay LISTENING_FOLDER SERVER_FOLDER`
"""

import asyncio
import sys
from pathlib import Path

from pml_common.bus.sockets.folder import SocketFolder


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """Pass on bytes until their end; returns their number."""
    passed = 0
    while data := await reader.read(65536):
        passed += len(data)
        writer.write(data)
    writer.close()
    return passed


async def relay(listening: SocketFolder, server: SocketFolder) -> int:
    """Relay one connection to the socket `one`; returns the number of bytes to the server."""
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far = await asyncio.open_unix_connection(sock=server.connect("one"))
        up, _ = await asyncio.gather(pump(reader, far[1]), pump(far[0], writer))
        if not accepted.done():
            accepted.set_result(up)

    async with await asyncio.start_unix_server(meet, sock=listening.listen("relay")):
        print("listening", flush=True)  # noqa: T201 - read by the test
        return await accepted


if __name__ == "__main__":
    print(asyncio.run(relay(*(SocketFolder(Path(each)) for each in sys.argv[1:]))))  # noqa: T201
