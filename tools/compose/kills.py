"""`make compose-kills`: kill -9 of gateways and executors under load, on the running containers.

Callers run programs of several calls that append lines to a note, each under a key of its own, and
ask again when no gateway answers. Meanwhile one executor, then one gateway is killed and started
again, `--rounds` times. Then each accepted workflow must have ended, and each note must have each
line at most once, and once where its call had completed. Ends with 1 if not.
"""

import argparse
import asyncio
import secrets
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import httpx2

from tools.compose.project import ComposeFailed, Container, Project
from tools.compose.up import up

CALLS = 8
PROGRAM = f"""\
for (let n = 0; n < {CALLS}; n++) {{
  await mcp.notes.append_line({{ name: args.run, line: `line ${{n}}`, wait_ms: 100 }});
}}
return {CALLS};
"""
READ = "return await mcp.notes.read_note({ name: args.run });"
KILLED = ("executor", "gateway")
ENDS_WITHIN_S, HEALTHY_WITHIN_S, BETWEEN_S, AGAIN_AFTER_S = 300.0, 120.0, 3.0, 0.5
ENDED = ("success", "error")


@dataclass
class Run:
    """One workflow: its key, its caller's last answer, and how often the caller asked again."""

    key: str
    answer: dict[str, Any] = field(default_factory=dict[str, Any])
    repeats: int = 0
    took_s: float = 0.0

    @property
    def status(self) -> str:
        """Its end, or its last state."""
        return str(self.answer.get("status", "no answer"))

    def faults(self, lines: Sequence[str]) -> list[str]:
        """Find what is wrong with the lines of its note."""
        times = Counter(lines)
        found = [f"{self.key}: {line!r} {n} times" for line, n in times.items() if n > 1]
        if self.status not in ENDED:
            found.append(f"{self.key} did not end: {self.status}")
        calls = self.answer.get("calls", {"made": 0, "failed": 0})
        done = CALLS if self.status == "success" else calls["made"] - calls["failed"]
        lost = [n for n in range(done) if not times[f"line {n}"]]
        return [*found, *(f"{self.key}: completed call {n} left no line" for n in lost)]


class Load:
    """Callers that begin a workflow when their last one has ended, until told to stop."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self.runs: list[Run] = []
        self.stopping = asyncio.Event()

    async def call(self) -> None:
        """Run workflows one after the other."""
        while not self.stopping.is_set():
            run = Run(f"run-{secrets.token_hex(6)}")
            self.runs.append(run)
            began = monotonic()
            await self._until_end(run)
            run.took_s = monotonic() - began

    async def _until_end(self, run: Run) -> None:
        request = {"code": PROGRAM, "args": {"run": run.key}, "idempotency_key": run.key}
        deadline = monotonic() + ENDS_WITHIN_S
        while monotonic() < deadline:
            answer = await self._post({**request, "timeout": 120})
            if answer is not None:
                run.answer = answer
                if run.status in ENDED:
                    return
            run.repeats += 1
            await asyncio.sleep(AGAIN_AFTER_S)

    async def lines(self, run: Run) -> list[str]:
        """Read the lines of a run's note, while gateways may still be starting."""
        deadline = monotonic() + ENDS_WITHIN_S
        while monotonic() < deadline:
            answer = await self._post({"code": READ, "args": {"run": run.key}})
            if answer is not None and answer["status"] == "success":
                return str(answer["result"]["result"]).splitlines()
            await asyncio.sleep(AGAIN_AFTER_S)
        raise ComposeFailed(f"the note {run.key} cannot be read")

    async def _post(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """Ask for a run; None where no gateway answered or accepted it."""
        try:
            answer = await self._http.post("/api/execute", json=body)
        except httpx2.TransportError:
            return None
        return answer.json() if answer.is_success else None


async def disturb(project: Project, rounds: int) -> list[tuple[str, float]]:
    """Kill one container of each kind, in turn, and start it again; return the seconds from each
    kill until it is healthy."""
    killed: list[tuple[str, float]] = []
    for number in range(rounds):
        for service in KILLED:
            await asyncio.sleep(BETWEEN_S)
            containers = await asyncio.to_thread(project.of_service, service)
            victim = containers[number % len(containers)]
            began = monotonic()
            await asyncio.to_thread(project.engine.run, "kill", "--signal", "KILL", victim.name)
            await asyncio.sleep(BETWEEN_S)
            await asyncio.to_thread(project.engine.run, "start", victim.name)
            await _until_healthy(project, victim)
            killed.append((victim.name, monotonic() - began))
            print(f"killed {victim.name}, healthy again after {killed[-1][1]:.1f} s", flush=True)
    return killed


async def _until_healthy(project: Project, victim: Container) -> None:
    deadline = monotonic() + HEALTHY_WITHIN_S
    while monotonic() < deadline:
        known = {one.name: one for one in await asyncio.to_thread(project.containers)}
        if victim.name in known and known[victim.name].is_well:
            return
        await asyncio.sleep(1)
    raise ComposeFailed(f"{victim.name} is not healthy {HEALTHY_WITHIN_S:g} s after its start")


async def run(project: Project, rounds: int, callers: int) -> list[str]:
    """Load the stack, disturb it, and return what is wrong; prints figures."""
    url = project.address("proxy", 8080)
    async with httpx2.AsyncClient(base_url=url, timeout=130.0) as http:
        load = Load(http)
        tasks = [asyncio.create_task(load.call()) for _ in range(callers)]
        try:
            killed = await disturb(project, rounds)
        finally:
            load.stopping.set()
            await asyncio.gather(*tasks)
        faults = [f for one in load.runs for f in one.faults(await load.lines(one))]
    show(load.runs, len(killed))
    return faults


def show(runs: Sequence[Run], killed: int) -> None:
    """Print the figures."""
    print(f"{killed} kills, {len(runs)} workflows of {CALLS} calls")
    for status, count in Counter(one.status for one in runs).most_common():
        print(f"  {status:<10} {count}")
    errors = [one.answer["error"] for one in runs if one.status == "error"]
    for (kind, message), count in Counter((e["kind"], e["message"][:90]) for e in errors).items():
        print(f"    {count} x {kind}: {message}")
    print(f"  asked again {sum(one.repeats for one in runs)} times")
    print(f"  longest {max(one.took_s for one in runs):.1f} s")


def main() -> int:
    """Start the stack with the demo's server and run the test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--callers", type=int, default=4)
    given = parser.parse_args()
    try:
        project = up(demo=True)
        for service in KILLED:
            if len(project.of_service(service)) < 2:
                raise ComposeFailed(f"it needs two of {service}, as deploy/compose.yml has them")
        faults = asyncio.run(run(project, given.rounds, given.callers))
    except ComposeFailed as error:
        print(f"compose-kills failed: {error}", file=sys.stderr)
        return 1
    for fault in faults:
        print(f"FAILED: {fault}")
    if not faults:
        print("every workflow ended; no completed call was repeated or lost")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
