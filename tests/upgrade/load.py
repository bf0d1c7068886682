"""Runs under load, approvals that wait from one phase to the next, and what became of both."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

import httpx2

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.crashes.caller import Answer, Caller

CAPABILITY, INTENT = "upgrade:next", "the number after a number"
LEARNED = """
const seen = await mcp.tally.look({ run: args.run, n: args.n });
return seen.n + 1;
"""
CHAIN = """
const next = await capabilities.upgrade_next({ run: args.run, n: args.n });
const done = await mcp.tally.mark({ run: args.run, n: next, wait: args.wait });
const last = await mcp.tally.mark({ run: args.run, n: done.n + 1 });
return last.n;
"""
PAY = """
const first = await mcp.tally.mark({ run: args.run, n: 1 });
const paid = await mcp.tally.pay({ run: args.run, n: 2 });
return first.n + paid.n;
"""
PARK = """
const first = await mcp.tally.mark({ run: args.run, n: 1 });
const paid = await mcp.call(args.tool, { run: args.run, n: first.n + 1 });
return first.n + paid.n;
"""
WAITS_MS = (0, 0, 1500)
"""Durations of a call, by caller: the last one's runs are under way while services change."""
ENDED_WITHIN_S = PATIENCE_S
PAID = 3


class Site(Protocol):
    """A stack to load: its gateway, the headers of a decision, and the log of its tool server."""

    @property
    def http(self) -> httpx2.AsyncClient:
        """A client of the gateway."""
        ...

    @property
    def url(self) -> str:
        """The gateway's address."""
        ...

    @property
    def approver(self) -> Mapping[str, str]:
        """Headers of a decision."""
        ...

    @property
    def calls(self) -> Path:
        """The log of the tool server's calls."""
        ...


@dataclass
class Outcome:
    """Runs and approvals of a phase: how many, and what was wrong with the others."""

    runs: int = 0
    decided: int = 0
    wrong: list[str] = field(default_factory=list[str])


@dataclass
class Load:
    """The callers of one stack. `waiting` are approvals not decided yet, by the run's name."""

    site: Site
    outcome: Outcome = field(default_factory=Outcome)
    waiting: dict[str, Answer] = field(default_factory=dict[str, Answer])
    succeeded: dict[str, int] = field(default_factory=dict[str, int])
    """Runs that ended well, and how many calls each had to make."""
    workflows: dict[str, object] = field(default_factory=dict[str, object])
    """The id of each run's workflow."""
    _names: Counter[str] = field(default_factory=Counter[str])

    def caller(self, http: httpx2.AsyncClient) -> Caller:
        """Return a caller that decides for itself."""
        return Caller(http, approver=self.site.approver, workflows=self.workflows)

    async def learn(self) -> None:
        """Learn the capability that other programs call."""
        caller = self.caller(self.site.http)
        await caller.execute(LEARNED, "learns", {"n": 1}, name=CAPABILITY, intent=INTENT)

        async def known() -> bool:
            return (await self.site.http.get(f"/api/capabilities/{CAPABILITY}")).is_success

        await eventually(known)

    @asynccontextmanager
    async def callers(self, *urls: str) -> AsyncGenerator[None]:
        """Keep runs coming, at each gateway in turn; at the exit those under way end."""
        enough = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for number, wait in enumerate(WAITS_MS):
                url = (urls or (self.site.url,))[number % max(1, len(urls))]
                tasks.create_task(self._call(url, wait, enough))
            try:
                yield
            finally:
                enough.set()

    async def _call(self, url: str, wait: int, enough: asyncio.Event) -> None:
        async with httpx2.AsyncClient(base_url=url, timeout=2 * PATIENCE_S) as http:
            caller = self.caller(http)
            while not enough.is_set():
                run = self._name("chain")
                n = len(run)
                try:
                    answer = await caller.execute(CHAIN, run, {"n": n, "wait": wait})
                except (TimeoutError, AssertionError, KeyError) as error:
                    self.outcome.wrong.append(f"{run}: {error!r}")
                    continue
                self.check(run, answer, n + 2, calls=3)

    async def some(self, runs: int) -> None:
        """Wait until this many more runs have ended."""
        goal = self.outcome.runs + len(self.outcome.wrong) + runs
        await eventually(
            lambda: self.outcome.runs + len(self.outcome.wrong) >= goal, within=4 * ENDED_WITHIN_S
        )

    async def ask(self) -> None:
        """Leave one workflow waiting before it runs, and one parked within its run."""
        for kind, code in (("pay", PAY), ("park", PARK)):
            run = self._name(kind)
            args = {"run": run, "tool": "tally:pay"}
            request: Answer = {"code": code, "args": args, "idempotency_key": run, "timeout": 60}
            body = await self._answer(run, "/api/execute", request)
            if kind == "park":  # whether it may begin at all is asked first
                body = body and await self._approve(run, body)
            if body:
                self.waiting[run] = body

    async def decide(self) -> None:
        """Approve what waits, and check how it ends."""
        waiting, self.waiting = self.waiting, {}
        for run, asked in waiting.items():
            body = await self._approve(run, asked)
            if body:
                self.workflows[run] = asked["workflow_id"]
                self.check(run, body, PAID, calls=2)
                self.outcome.decided += 1

    async def _approve(self, run: str, asked: Answer) -> Answer | None:
        if asked.get("status") != "approval_required":
            self.outcome.wrong.append(f"{run}: asks for no approval: {json.dumps(asked)[:400]}")
            return None
        approval = cast("Answer", asked["approval"])["id"]
        decision: Answer = {"decision": "approve", "approval_id": approval, "wait": True}
        return await self._answer(run, f"/api/workflows/{asked['workflow_id']}/approval", decision)

    async def _answer(self, run: str, path: str, body: Answer) -> Answer | None:
        answer = await self.site.http.post(path, json=body, headers=self.site.approver)
        if answer.is_success:
            return answer.json()
        self.outcome.wrong.append(f"{run}: {answer.status_code} {answer.text[:400]}")
        return None

    async def look_around(self) -> None:
        """Read what people and agents read."""
        for path in ("/api/capabilities", "/api/workflows", f"/api/capabilities/{CAPABILITY}"):
            answer = await self.site.http.get(path)
            if not answer.is_success:
                self.outcome.wrong.append(f"GET {path}: {answer.status_code} {answer.text[:400]}")
        found = await self.site.http.post("/api/discover", json={"intent": INTENT})
        if CAPABILITY.partition(":")[2] not in found.text:
            self.outcome.wrong.append(f"discover: {found.status_code} {found.text[:400]}")

    def miscounted(self) -> Sequence[str]:
        """Ended runs whose calls did not happen exactly once each."""
        lines = self.site.calls.read_text(encoding="utf-8").splitlines()
        calls = Counter(json.loads(line)["args"]["run"] for line in lines)
        return [
            f"{run}: {calls[run]} calls instead of {expected}"
            for run, expected in self.succeeded.items()
            if calls[run] != expected
        ]

    def _name(self, kind: str) -> str:
        self._names[kind] += 1
        return f"{kind}-{self._names[kind]}"

    def check(self, run: str, answer: Answer, result: int, *, calls: int) -> None:
        """Note how a run ended, and how many calls it had to make."""
        if (answer.get("status"), answer.get("result")) != ("success", result):
            self.outcome.wrong.append(f"{run}: {json.dumps(answer)[:400]}")
            return
        self.succeeded[run] = calls
        self.outcome.runs += 1
