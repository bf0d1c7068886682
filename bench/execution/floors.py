"""Floors that the figures are divided by, measured in the same run."""

import asyncio
import json
import resource
import statistics
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from deno import find_deno_bin
from nats.aio.client import Client
from nats.errors import Error as NatsError

from libs.pml_local.tests.support.harness import eventually

CODE = 'return await mcp.pml_stub.echo({ greeting: "hello" });'
WARM_UP, RUNS, REQUESTS = 10, 60, 2000
_BARE = f"""
const mcp = {{ pml_stub: {{ echo: (args: unknown) => Promise.resolve(args) }} }};
const result = await (async () => {{ {CODE} }})();
console.log(JSON.stringify(result));
"""
_FLAGS = ("--no-prompt", "--no-remote", "--no-npm", "--no-config", "--no-check")
_SUBJECT = "bench.echo"
_RESPONDER = Path(__file__).with_name("responder.py")


def p50(seconds: Sequence[float]) -> float:
    """Median in milliseconds."""
    return statistics.median(seconds) * 1000


def p95(seconds: Sequence[float]) -> float:
    """95th percentile in milliseconds."""
    return sorted(seconds)[int(len(seconds) * 0.95)] * 1000


async def timed(times: int, action: Callable[[], Awaitable[object]]) -> list[float]:
    """Seconds of each of `times` sequential calls."""
    found: list[float] = []
    for _ in range(times):
        began = perf_counter()
        await action()
        found.append(perf_counter() - began)
    return found


@dataclass(frozen=True)
class Floor:
    """One process that runs the same code with a stub inside: p50 and CPU, in ms."""

    wall_ms: float
    cpu_ms: float


async def bare_deno(folder: Path) -> Floor:
    """Measure a bare `deno run`, as often as the workflows compared with it."""
    program = folder / "bare.ts"
    program.write_text(_BARE, encoding="utf-8")

    async def run() -> None:
        process = await asyncio.create_subprocess_exec(
            find_deno_bin(), "run", *_FLAGS, str(program), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert json.loads(out) == {"greeting": "hello"}

    await timed(WARM_UP, run)
    before = _cpu_of_children()
    wall_ms = p50(await timed(RUNS, run))
    return Floor(wall_ms, (_cpu_of_children() - before) / RUNS)


def _cpu_of_children() -> float:
    """CPU milliseconds of ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


async def raw_request(url: str) -> float:
    """p50 of a nats-py request to a responder in another process, in ms."""
    responder = await asyncio.create_subprocess_exec(sys.executable, str(_RESPONDER), url, _SUBJECT)
    client = Client()
    await client.connect(url)
    try:
        await eventually(lambda: _answers(client), within=10.0)
        return p50(await timed(REQUESTS, lambda: client.request(_SUBJECT, b"x", timeout=5)))
    finally:
        await client.close()
        responder.terminate()
        await responder.wait()


async def _answers(client: Client) -> bool:
    try:
        await client.request(_SUBJECT, b"x", timeout=0.2)
    except NatsError:
        return False
    return True
