"""Callers that keep a gateway busy and record every wrong answer."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import httpx2

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S

Json = dict[str, object]

SHORT = "return args.n * 2;"


@dataclass
class Callers:
    """Callers of one gateway. `drain_s` is its drain time: shorter requests are answered with their
    result when it stops."""

    url: str
    drain_s: float
    answered: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    running: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])
    """Workflows answered with `running`, with their expected results."""
    restarted: str = ""
    """The service that was restarted last."""

    def client(self) -> httpx2.AsyncClient:
        """A client with persistent connections."""
        return httpx2.AsyncClient(base_url=self.url, timeout=PATIENCE_S)

    async def short(self, http: httpx2.AsyncClient) -> None:
        """Execute a short program."""
        n = self.answered["short"]
        await self._execute(http, "short", {"code": SHORT, "args": {"n": n}}, 2 * n)

    async def short_anew(self, _: httpx2.AsyncClient) -> None:
        """Execute a short program on a new connection."""
        async with self.client() as http:
            await self.short(http)

    async def discover(self, http: httpx2.AsyncClient) -> None:
        """Search for tools."""
        answer = await http.post("/api/discover", json={"intent": "double a number"})
        # A search at a new registry waits for its model, which a busy machine may load for longer
        # than the 5 s of a query.
        loads = self.restarted == "registry" and "no answer within" in answer.text
        if answer.status_code != 503 or not loads:
            self._note("discover", answer.status_code == 200, answer)

    async def long(self, http: httpx2.AsyncClient, seconds: float) -> str:
        """Execute a program of this duration; returns its workflow."""
        code = "await new Promise((done) => setTimeout(done, args.ms)); return args.ms;"
        ms = int(seconds * 1000)
        return await self._execute(http, "long", {"code": code, "args": {"ms": ms}}, ms)

    async def follow(self, http: httpx2.AsyncClient, workflow: str) -> list[Json]:
        """Read a workflow's events to the end, resuming where each stream ended."""
        seen: list[Json] = []
        while not seen or seen[-1]["event"] != "gateway.workflow-finished":
            last = {"Last-Event-ID": str(seen[-1]["id"])} if seen else {}
            path = f"/api/workflows/{workflow}/events"
            async with http.stream("GET", path, headers=last) as stream:
                self.answered["stream"] += 1
                text = "".join([part async for part in stream.aiter_text()])
            assert stream.status_code == 200, f"{stream.status_code}: {text}"
            seen += events_of(text)
        return seen

    async def keep(
        self, one: Callable[[httpx2.AsyncClient], Awaitable[object]], until: asyncio.Event
    ) -> None:
        """Repeat a request on one connection."""
        async with self.client() as http:
            while not until.is_set():
                try:
                    await one(http)
                except httpx2.TransportError as error:
                    self.wrong.append(f"{one}: {error!r}")
                    await asyncio.sleep(0.05)  # waits: pace of the load

    async def results(self) -> list[str]:
        """Errors of workflows answered with `running`, once they have ended."""
        async with self.client() as http:

            async def ended(workflow: str) -> Json | None:
                found = (await http.get(f"/api/workflows/{workflow}")).json()
                return found if found["status"] in ("success", "error") else None

            wrong: list[str] = []
            for workflow, expected in self.running:
                found = await eventually(lambda w=workflow: ended(w), within=PATIENCE_S)
                if (found["status"], found.get("result")) != ("success", expected):
                    wrong.append(f"{workflow}: {found}")
            return wrong

    async def _execute(
        self, http: httpx2.AsyncClient, kind: str, request: Json, expected: object
    ) -> str:
        clock = asyncio.get_running_loop().time
        began = clock()
        answer = await http.post("/api/execute", json=request)
        body: Json = answer.json() if answer.status_code == 200 else {}
        if body.get("status") == "running" and clock() - began >= self.drain_s:
            self.running.append((str(body["workflow_id"]), expected))
            self.answered[f"{kind}, running"] += 1
        else:
            good = body.get("status") == "success" and body.get("result") == expected
            self._note(kind, good, answer)
        return str(body.get("workflow_id"))

    def _note(self, kind: str, good: bool, answer: httpx2.Response) -> None:
        self.answered[kind] += 1
        if not good:
            self.wrong.append(f"{kind}: {answer.status_code} {answer.text}")


def events_of(text: str) -> list[Json]:
    """The events in a stream, without comments."""
    found: list[Json] = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[0] != ":")
        if fields:
            found.append({**fields, "data": json.loads(fields["data"])})
    return found
