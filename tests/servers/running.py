"""Installation of the servers, and those of them that listen at a port."""

import asyncio
import os
import shutil
import signal
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic

from deno import find_deno_bin
from pydantic import JsonValue

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.ports import free_port
from tests.servers.known import Known, Programs

_FETCH_S = 5 * PATIENCE_S
_LISTEN_S = 90.0
_STOP_S = 5.0
_AT_ONCE = 2


class NotInstalled(Exception):
    """A package could not be fetched, or a program is missing."""


def programs(cache: Path) -> Programs:
    """Find Deno and uv. Raises NotInstalled."""
    uv = shutil.which("uv")
    if uv is None:
        raise NotInstalled("uv is not on the PATH: run this with `make servers`")
    cache.mkdir(parents=True, exist_ok=True)
    return Programs(str(find_deno_bin()), uv, cache)


async def install(servers: Sequence[Known], tools: Programs) -> dict[str, str]:
    """Download all packages; return why those that cannot be had are missing, by title."""
    room = asyncio.Semaphore(_AT_ONCE)
    caches = {"DENO_DIR": str(tools.cache / "deno"), "UV_CACHE_DIR": str(tools.cache / "uv")}

    async def fetch(server: Known) -> str | None:
        async with room:
            process = await asyncio.create_subprocess_exec(
                *server.fetch(tools),
                env={**os.environ, **caches, "NO_COLOR": "1"},
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                async with asyncio.timeout(_FETCH_S):
                    _, said = await process.communicate()
            except TimeoutError:
                process.kill()
                await process.wait()
                return f"not fetched within {_FETCH_S:g} s"
        last = said.decode(errors="replace").strip().rpartition("\n")[2]
        return f"not fetched: {last}" if process.returncode else None

    found = await asyncio.gather(*(fetch(server) for server in servers))
    return {server.title: why for server, why in zip(servers, found, strict=True) if why}


@asynccontextmanager
async def entries(
    servers: Sequence[Known], tools: Programs, folder: Path
) -> AsyncGenerator[Mapping[str, JsonValue]]:
    """Start the servers that listen at a port, until the context exits; yield the entries of all
    for an `mcpServers` file. One that does not start is reported by the gateway."""
    made: dict[str, JsonValue] = {}
    ports: list[tuple[int, asyncio.subprocess.Process]] = []
    async with AsyncExitStack() as stack:
        for server in servers:
            port = free_port() if server.listens else 0
            argv = list(server.start(tools, folder, port))
            env = server.environment(tools, folder, port)
            if not server.listens:
                made[server.title] = {
                    "command": argv[0],
                    "args": list[JsonValue](argv[1:]),
                    "env": dict[str, JsonValue](env),
                    "cwd": str(folder),
                }
                continue
            process = await stack.enter_async_context(_listening(server, argv, env, folder))
            ports.append((port, process))
            url = f"http://{server.host}:{port}{server.path}"
            made[server.title] = {"type": server.transport, "url": url}
        began = monotonic()
        for port, process in ports:
            left = max(1.0, _LISTEN_S - (monotonic() - began))
            with suppress(AssertionError):  # the gateway says what is wrong
                await eventually(partial(_is_up, port, process), within=left)
        yield made


@asynccontextmanager
async def _listening(
    server: Known, argv: Sequence[str], env: Mapping[str, str], folder: Path
) -> AsyncGenerator[asyncio.subprocess.Process]:
    log = folder / f"{server.title}.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=folder,
            env={"PATH": os.environ["PATH"], **env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    """End a process and its children."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):  # waits: then it is killed
                await process.wait()


def _is_up(port: int, process: asyncio.subprocess.Process) -> bool:
    """Whether somebody listens at the port, or nobody will."""
    with socket.socket() as probe:
        listens = probe.connect_ex(("127.0.0.1", port)) == 0
    with socket.socket(socket.AF_INET6) as probe:
        listens = listens or probe.connect_ex(("::1", port)) == 0
    return listens or process.returncode is not None
