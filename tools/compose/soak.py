"""`make compose-soak`: a steady rate of workflows against the compose stack, and its memory.

Begins `--rate` workflows a second for `--minutes`, at times fixed beforehand, whether or not others
have ended; latencies count from these times. Each appends a line to a note through the demo's MCP
server, so that lines can be compared with successes. Prints rate, p50 and p99, errors, memory of
each container at the start, in the middle and at the end. Ends with 1 where a workflow failed, was
lost or was repeated.
"""

import argparse
import asyncio
import re
import secrets
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

import httpx2

from tools.compose.project import ComposeFailed, Project
from tools.compose.up import up

RATE, MINUTES, WARM_UP = 5.0, 10.0, 20
PROGRAM = "return await mcp.notes.append_line({ name: args.note, line: args.line });"
READ = "return await mcp.notes.read_note({ name: args.note });"
ANSWER_WITHIN_S = 60.0
UNITS = {"B": 1 / 2**20, "KiB": 1 / 2**10, "MiB": 1.0, "GiB": 2.0**10}


@dataclass
class Soak:
    """Latencies of successes in seconds, other ends by what was wrong, and memory in MiB of each
    container, by when it was taken."""

    note: str = field(default_factory=lambda: f"soak-{secrets.token_hex(4)}")
    took: list[float] = field(default_factory=list[float])
    errors: Counter[str] = field(default_factory=Counter[str])
    memory: dict[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    seconds: float = 0.0

    async def run(self, http: httpx2.AsyncClient, project: Project, rate: float, s: float) -> None:
        """Warm up, then begin all workflows at their times and wait for their ends."""
        for number in range(WARM_UP):
            await self._one(http, f"warm {number}", monotonic())
        self.took.clear()
        self.memory["start"] = await asyncio.to_thread(memory_of, project)
        middle = asyncio.create_task(self._in_the_middle(project, s / 2))
        began, count = monotonic(), round(rate * s)
        async with asyncio.TaskGroup() as all_of_them:
            for number in range(count):
                due = began + number / rate
                await asyncio.sleep(max(0.0, due - monotonic()))
                all_of_them.create_task(self._one(http, f"line {number}", due))
        self.seconds = monotonic() - began
        await middle
        self.memory["end"] = await asyncio.to_thread(memory_of, project)

    async def _in_the_middle(self, project: Project, after_s: float) -> None:
        await asyncio.sleep(after_s)
        self.memory["middle"] = await asyncio.to_thread(memory_of, project)

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
    print(f"{'memory, MiB':<24}{'start':>9}{'middle':>9}{'end':>9}")
    for name in sorted(soak.memory["end"]):
        row = (soak.memory[when].get(name, 0.0) for when in ("start", "middle", "end"))
        print(f"{name:<24}{''.join(f'{mib:9.1f}' for mib in row)}")


async def main() -> int:
    """Start the stack with the demo's server and soak it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=RATE, help="workflows a second")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    given = parser.parse_args()
    try:
        project = await asyncio.to_thread(up, demo=True)
        url, soak = project.address("proxy", 8080), Soak()
        limits = httpx2.Limits(max_keepalive_connections=None)
        async with httpx2.AsyncClient(base_url=url, timeout=ANSWER_WITHIN_S, limits=limits) as http:
            await soak.run(http, project, given.rate, given.minutes * 60)
            faults = await soak.faults(http)
    except ComposeFailed as error:
        print(f"compose-soak failed: {error}", file=sys.stderr)
        return 1
    show(soak)
    for fault in faults:
        print(f"FAILED: {fault}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
