"""Program that connects to the test server over stdio, writes its pid to a file, and waits."""

import asyncio
import os
import sys
from pathlib import Path

from pml_gateway.adapters.mcp_client.server_pool import ServerPool
from pml_gateway.domain.servers.server_config import StdioServer


async def main(log: Path) -> None:
    program = Path(__file__).parent / "server_program.py"
    server = StdioServer(command=sys.executable, args=(str(program), "--log", str(log)))
    pool = ServerPool({"box": server})
    await pool.start()
    await pool.settled(20)
    write_children(log)
    await asyncio.Event().wait()


def write_children(log: Path) -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    log.write_text("\n".join(children.split()))


asyncio.run(main(Path(sys.argv[1])))
