"""The embedded stack with its own executors taken out and mortal ones put in."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import httpx2

from libs.pml_local.tests.support.harness import eventually, stack_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import ids
from pml_common.contracts.catalog import RUN_FINISHED, TRACE_RECORDED
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_local.approver import approver_headers
from pml_local.composition import StackOptions
from pml_local.ports import free_port
from pml_local.process import ChildProcess, Command
from pml_local.services import GATEWAY, ServiceSpec, pml_services
from pml_local.stack import Stack, embedded_stack
from tests.crashes.caller import Answer, Caller, Meanwhile, nothing
from tests.crashes.crash_plan import CALLS, Diaries, Line
from tests.crashes.programs import PROGRAMS
from tests.crashes.verdict import Told

HERE = Path(__file__).parent
SCOPE = Scope(org="local", project="default")
RUN_WITHIN_S = 60.0
ARGS: JsonObject = {"tool": "tally:pay", "linger": 0}
"""What every program is given: a tool to call by name, and how long its last call takes, in ms."""


class WrongDeath(Exception):
    """An executor ended, though not by its plan."""


@dataclass
class Ground:
    """Where programs are run while their executors die."""

    stack: Stack
    http: httpx2.AsyncClient
    bus: NatsBus
    diaries: Diaries
    folder: Path

    @property
    def approver(self) -> dict[str, str]:
        """The headers of a request that decides."""
        return approver_headers(self.stack.approver_key)

    async def learn(self, capability: str, code: str) -> None:
        """Run a program once, and wait until it is known under this name."""
        await Caller(self.http, approver=self.approver).execute(
            code, f"learns-{capability}", {**ARGS, "n": 1}, name=capability
        )

        async def known() -> bool:
            return (await self.http.get(f"/api/capabilities/{capability}")).is_success

        await eventually(known, within=RUN_WITHIN_S)

    async def answer(
        self,
        program: str,
        run: str,
        *,
        linger_ms: int = 0,
        meanwhile: Meanwhile = nothing,
        repeats: bool = False,
    ) -> Answer:
        """Run a program, agree to what is asked, and wait for its answer; see Caller."""
        caller = Caller(self.http, meanwhile, self.approver, repeats)
        args: JsonObject = {**ARGS, "linger": linger_ms}
        return await caller.execute(PROGRAMS[program].code, run, args)

    async def settled(self, workflow: UUID) -> list[Line]:
        """The diary of a workflow once a life of it has come to its end."""

        def done() -> list[Line] | None:
            diary = self.diaries.read(workflow)
            return diary if any(line.what == "done" for line in diary) else None

        return await eventually(done, within=RUN_WITHIN_S)

    async def told(self, run: str, answer: Answer) -> Told:
        """What a run has left behind."""
        entity = str(workflow_of(run))
        records = await self.bus.history(SCOPE, entity, of=RUN_FINISHED)
        return Told(
            answer,
            [record.message for record in records if isinstance(record.message, RunFinished)],
            [call for call in self.diaries.calls() if _run(call) == run],
        )

    async def appends(self, workflow: UUID) -> int:
        """How many appends its journal holds."""
        return len(await self.bus.history(SCOPE, str(workflow), of=TRACE_RECORDED))

    @asynccontextmanager
    async def executors(self, count: int) -> AsyncGenerator[None]:
        """So many executors, each started again when it was killed. Raises WrongDeath, in a
        group, as soon as one ends by itself."""
        async with asyncio.TaskGroup() as kept:
            keepers = [kept.create_task(self._keep(number)) for number in range(count)]
            try:
                yield
            finally:
                for keeper in keepers:
                    keeper.cancel()

    async def _keep(self, number: int) -> None:
        command = Command(
            f"executor {number}",
            (sys.executable, "-m", "tests.crashes.mortal_executor", str(self.folder)),
            self.folder / f"executor-{number}.log",
            env={**os.environ, **self.stack.credentials("executor")},
            cwd=HERE.parents[1],
            stop_within=5.0,
        )
        while True:
            child = await ChildProcess.start(command)
            try:
                code = await child.wait()
            finally:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGCONT)
                await child.stop()
            if code != -signal.SIGKILL:
                raise WrongDeath(f"an executor ended with {code}, see {command.log}")


def key_of(name: str) -> str:
    """A name as it may be an idempotency key."""
    return name.translate(str.maketrans({" ": "-", ",": None, ":": None}))


def workflow_of(run: str) -> UUID:
    """The id of the workflow that runs under this name."""
    return ids.workflow_id(SCOPE, run)


def _run(call: object) -> object:
    return call["args"]["run"]  # type: ignore[index]


@asynccontextmanager
async def ground(home: Path) -> AsyncGenerator[Ground]:
    """The stack without an executor, its gateway mortal, and a server of tools that count."""
    folder = home / "crashes"
    folder.mkdir(parents=True)
    servers, policy = folder / "servers.json", folder / "policy.json"
    command = [str(HERE / "tool_server.py"), str(folder / CALLS)]
    tally = {"command": sys.executable, "args": command, "trust": "hints"}
    servers.write_text(json.dumps({"mcpServers": {"tally": tally}}))
    rules = {"tally:pay": "ask", "tally:*": "allow"}
    policy.write_text(
        json.dumps({"rules": [{"pattern": tool, "verdict": rules[tool]} for tool in rules]})
    )
    options = StackOptions(
        home=home / "data",
        gateway_port=free_port(),
        mcp_servers=servers,
        env={"PML_GATEWAY_POLICY_FILE": str(policy)},
        services=[
            _mortal(service, folder) for service in pml_services() if service.name != "executor"
        ],
    )
    async with (
        embedded_stack(options) as stack,
        httpx2.AsyncClient(base_url=stack.url, timeout=2 * RUN_WITHIN_S) as http,
    ):
        bus = await NatsBus.connect(
            stack.nats_url, service="executor", identity=stack_identity(stack.home)
        )
        try:
            await eventually(lambda: _listed(http, {"mark", "look", "refuse", "pay"}), within=30.0)
            yield Ground(stack, http, bus, Diaries(folder), folder)
        finally:
            await bus.drain()


def _mortal(service: ServiceSpec, folder: Path) -> ServiceSpec:
    """The gateway so that it can be killed at its points; others as they are."""
    if service.name != GATEWAY:
        return service
    argv = (sys.executable, "-m", "tests.crashes.mortal_gateway", str(folder))
    return replace(service, argv=argv, env={**service.env, "PYTHONPATH": str(HERE.parents[1])})


async def _listed(http: httpx2.AsyncClient, tools: Iterable[str]) -> bool:
    """By the registry, which hears of tools a moment after the gateway."""
    question = {"intent": "change something, call it again", "type": "tool"}
    found = await http.post("/api/discover", json=question)
    listed = {hit["id"] for hit in found.json().get("hits", ())}
    return listed >= {f"tally:{tool}" for tool in tools}
