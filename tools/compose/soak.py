"""`make compose-soak`: a steady rate of workflows against the compose stack, and its memory; with
`--embedded` against the embedded stack, to compare.

Begins `--rate` workflows a second for `--minutes`, at times fixed beforehand, whether or not others
have ended; latencies count from these times. Each appends a line to a note through the demo's MCP
server, so that lines can be compared with successes. Prints rate, p50 and p99, errors, memory of
each container, or of each part with its children: at the start, median and highest of each third
of the time. `--samples FILE` keeps all samples. Ends with 1 where a workflow failed, was lost or
was repeated.
"""

import argparse
import asyncio
import json
import re
import secrets
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import monotonic

import httpx2
import psutil

from pml_local.composition import StackOptions
from pml_local.ports import free_port
from pml_local.stack import Stack, embedded_stack
from tools.compose.project import ComposeFailed, Project
from tools.compose.up import up

RATE, MINUTES, WARM_UP = 5.0, 10.0, 20
SAMPLE_EVERY_S, PERIODS = 20.0, 3
"""Sandboxes grow until they are replaced, so one sample of memory says little."""
PROGRAM = "return await mcp.notes.append_line({ name: args.note, line: args.line });"
READ = "return await mcp.notes.read_note({ name: args.note });"
ANSWER_WITHIN_S = 60.0
DEMO = Path("deploy/compose/demo")
Memory = Callable[[], Mapping[str, float]]
"""Returns MiB of each part."""
UNITS = {"B": 1 / 2**20, "KiB": 1 / 2**10, "MiB": 1.0, "GiB": 2.0**10}


@dataclass
class Soak:
    """Latencies of successes in seconds, other ends by what was wrong, and memory in MiB of each
    part, at the start and then at equal intervals."""

    note: str = field(default_factory=lambda: f"soak-{secrets.token_hex(4)}")
    took: list[float] = field(default_factory=list[float])
    errors: Counter[str] = field(default_factory=Counter[str])
    memory: list[Mapping[str, float]] = field(default_factory=list[Mapping[str, float]])
    seconds: float = 0.0

    async def run(self, http: httpx2.AsyncClient, memory: Memory, rate: float, s: float) -> None:
        """Warm up, then begin all workflows at their times and wait for their ends."""
        for number in range(WARM_UP):
            await self._one(http, f"warm {number}", monotonic())
        self.took.clear()
        self.memory.append(await asyncio.to_thread(memory))
        samples = asyncio.create_task(self._sample(memory, s))
        began, count = monotonic(), round(rate * s)
        async with asyncio.TaskGroup() as all_of_them:
            for number in range(count):
                due = began + number / rate
                await asyncio.sleep(max(0.0, due - monotonic()))
                all_of_them.create_task(self._one(http, f"line {number}", due))
        self.seconds = monotonic() - began
        await samples

    async def _sample(self, memory: Memory, s: float) -> None:
        began, count = monotonic(), max(PERIODS, round(s / SAMPLE_EVERY_S))
        for number in range(1, count + 1):
            await asyncio.sleep(max(0.0, began + s * number / count - monotonic()))
            self.memory.append(await asyncio.to_thread(memory))

    async def _one(self, http: httpx2.AsyncClient, line: str, due: float) -> None:
        request = {"code": PROGRAM, "args": {"note": self.note, "line": line}}
        try:
            answer = await http.post("/api/execute", json=request)
        except httpx2.TransportError as error:
            self.errors[type(error).__name__] += 1
            return
        if not answer.is_success:
            self.errors[f"HTTP {answer.status_code}"] += 1
            return
        body = answer.json()
        if body["status"] == "success":
            self.took.append(monotonic() - due)
        elif body["status"] == "error":
            self.errors[str(body["error"]["kind"])] += 1
        else:
            self.errors[str(body["status"])] += 1

    async def faults(self, http: httpx2.AsyncClient) -> list[str]:
        """Compare lines with successes."""
        answer = await http.post("/api/execute", json={"code": READ, "args": {"note": self.note}})
        lines = Counter(str(answer.json()["result"]["result"]).splitlines())
        found = [f"{count} workflows: {what}" for what, count in self.errors.items()]
        found += [f"{line!r} was appended {n} times" for line, n in lines.items() if n > 1]
        if len(lines) < len(self.took) + WARM_UP:
            found.append(f"{len(self.took) + WARM_UP} successes left {len(lines)} lines")
        return found


def memory_of(project: Project) -> dict[str, float]:
    """Ask the engine for the memory of each running container, in MiB."""
    names = [one.name for one in project.containers() if one.state == "running"]
    listed = project.engine.run(
        "stats", "--no-stream", "--format", "{{.Name}} {{.MemUsage}}", *names
    )
    found: dict[str, float] = {}
    for line in listed.splitlines():
        name, used, *_ = line.split()
        number, unit = re.fullmatch(r"([\d.]+)(\w+)", used).groups()  # pyright: ignore[reportOptionalMemberAccess]
        found[name] = float(number) * UNITS[unit]
    return found


def memory_of_parts(stack: Stack) -> dict[str, float]:
    """The share of memory (PSS) of each part and its children, in MiB."""
    found: dict[str, float] = {}
    for name, part in stack.parts.items():
        process = psutil.Process(part.pid)
        found[name] = sum(map(_share, (process, *process.children(recursive=True))))
    return found


def _share(process: psutil.Process) -> float:
    try:
        return process.memory_full_info().pss / 2**20
    except psutil.NoSuchProcess:
        return 0.0


@asynccontextmanager
async def in_containers() -> AsyncGenerator[tuple[str, Memory]]:
    """Start the compose stack with the demo's server."""
    project = await asyncio.to_thread(up, demo=True)
    yield project.address("proxy", 8080), lambda: memory_of(project)


@asynccontextmanager
async def embedded() -> AsyncGenerator[tuple[str, Memory]]:
    """Start the embedded stack with the demo's server."""
    with tempfile.TemporaryDirectory(prefix="pml-soak-", ignore_cleanup_errors=True) as made:
        notes, config = Path(made) / "notes", Path(made) / "mcp.json"
        notes.mkdir()
        arguments = [str(DEMO / "notes.py"), str(notes), "stdio"]
        server = {"command": sys.executable, "args": arguments, "trust": "hints"}
        config.write_text(json.dumps({"mcpServers": {"notes": server}}), encoding="utf-8")
        options = StackOptions(
            home=Path(made) / "data",
            gateway_port=free_port(),
            mcp_servers=config,
            env={"PML_GATEWAY_POLICY_FILE": str((DEMO / "gateway" / "policy.json").absolute())},
        )
        async with embedded_stack(options) as stack:
            yield stack.url, lambda: memory_of_parts(stack)


def p99(seconds: Sequence[float]) -> float:
    """99th percentile in milliseconds."""
    return sorted(seconds)[int(len(seconds) * 0.99)] * 1000


def show(soak: Soak) -> None:
    """Print the figures."""
    count = len(soak.took)
    print(f"{count} workflows in {soak.seconds:.1f} s: {count / soak.seconds:.2f}/s")
    if soak.took:
        print(f"p50 {statistics.median(soak.took) * 1000:.0f} ms, p99 {p99(soak.took):.0f} ms")
    print(f"errors: {sum(soak.errors.values())}")
    later = soak.memory[1:]
    bounds = [len(later) * period // PERIODS for period in range(PERIODS + 1)]
    columns = (f"{f'third {period + 1}':>11}{'highest':>10}" for period in range(PERIODS))
    print(f"{'memory, MiB':<24}{'start':>9}{''.join(columns)}")
    for name in sorted(soak.memory[-1]):
        used = [sample.get(name, 0.0) for sample in later]
        periods = (used[begin:end] for begin, end in pairwise(bounds))
        told = (f"{statistics.median(period):11.1f}{max(period):10.1f}" for period in periods)
        print(f"{name:<24}{soak.memory[0].get(name, 0.0):9.1f}{''.join(told)}")


async def main() -> int:
    """Start a stack with the demo's server and soak it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=RATE, help="workflows a second")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--embedded", action="store_true", help="the embedded stack instead")
    parser.add_argument("--samples", type=Path, help="a file for all samples of memory, as JSON")
    given = parser.parse_args()
    limits, soak = httpx2.Limits(max_keepalive_connections=None), Soak()
    try:
        async with (
            embedded() if given.embedded else in_containers() as (url, memory),
            httpx2.AsyncClient(base_url=url, timeout=ANSWER_WITHIN_S, limits=limits) as http,
        ):
            await soak.run(http, memory, given.rate, given.minutes * 60)
            faults = await soak.faults(http)
    except ComposeFailed as error:
        print(f"compose-soak failed: {error}", file=sys.stderr)
        return 1
    show(soak)
    if given.samples:
        given.samples.write_text(json.dumps(soak.memory), encoding="utf-8")
    for fault in faults:
        print(f"FAILED: {fault}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
