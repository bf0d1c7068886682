"""The embedded stack with crashing executors and a crashing gateway."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import httpx2
from nats.aio.client import Client

from libs.pml_common.tests.support.harness import set_up
from libs.pml_local.tests.support.harness import eventually, stack_identity
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import ids
from pml_common.contracts.catalog import CONSUMERS, RUN_FINISHED, TRACE_RECORDED
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_local.approver import approver_headers
from pml_local.composition import StackOptions
from pml_local.fork_server import SHARED, ForkServer
from pml_local.ports import free_port
from pml_local.process import ChildProcess, Command
from pml_local.services import GATEWAY, ServiceSpec, pml_services
from pml_local.stack import Stack, embedded_stack
from tests.crashes.caller import Answer, Caller, Meanwhile, decide_at_once
from tests.crashes.crash_plan import CALLS, CrashLog, LogEntry
from tests.crashes.programs import PROGRAMS
from tests.crashes.verdict import RunOutcome

HERE = Path(__file__).parent
SCOPE = Scope(org="local", project="default")
RUN_WITHIN_S = PATIENCE_S
ACK_WAIT_S = 2.0
"""Time without a heartbeat before redelivery; shorter than in production to save time."""
PRELOADED = (*SHARED, "pml_executor.app")
ARGS: JsonObject = {"tool": "tally:pay", "linger": 0}
"""Arguments of every program: a tool to call by name, and the duration of its last call in ms."""


class UnplannedExit(Exception):
    """An executor exited without a planned crash."""


@dataclass
class CrashStack:
    """A stack on which programs run while their executors die."""

    stack: Stack
    http: httpx2.AsyncClient
    bus: NatsBus
    crash_log: CrashLog
    folder: Path
    _executors: dict[int, int] = field(default_factory=dict[int, int])

    @property
    def approver(self) -> dict[str, str]:
        """Headers of a decision."""
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
        meanwhile: Meanwhile = decide_at_once,
        repeats: bool = False,
    ) -> Answer:
        """Run a program, approve every request, and wait for its end; see Caller."""
        caller = Caller(self.http, meanwhile, self.approver, repeats)
        args: JsonObject = {**ARGS, "linger": linger_ms}
        return await caller.execute(PROGRAMS[program].code, run, args)

    async def wait_until_done(self, workflow: UUID) -> list[LogEntry]:
        """Wait until a command run of the workflow has ended, and return the log."""

        def done() -> list[LogEntry] | None:
            diary = self.crash_log.read(workflow)
            return diary if any(line.what == "done" for line in diary) else None

        return await eventually(done, within=RUN_WITHIN_S)

    async def outcome(self, run: str, answer: Answer) -> RunOutcome:
        """Collect what a run left behind."""
        entity = str(workflow_of(run))
        records = await self.bus.history(SCOPE, entity, of=RUN_FINISHED)
        return RunOutcome(
            answer,
            [record.message for record in records if isinstance(record.message, RunFinished)],
            [call for call in self.crash_log.calls() if _run(call) == run],
        )

    async def appends(self, workflow: UUID) -> int:
        """The number of appends in its journal."""
        return len(await self.bus.history(SCOPE, str(workflow), of=TRACE_RECORDED))

    def resume_executors(self, but: int) -> None:
        """Resume every frozen executor except one: on a slow machine it may reach its point after
        its trial."""
        for pid in self._executors.values():
            if pid != but:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    @asynccontextmanager
    async def executors(self, count: int) -> AsyncGenerator[None]:
        """Run this many executors, each restarted when it was killed; forks, as the stack's are.
        Raises UnplannedExit, in a group, as soon as one exits by itself."""
        forks = await ForkServer.start(self.folder / "fork-server.log", PRELOADED)
        try:
            async with asyncio.TaskGroup() as tasks:
                supervisors = [tasks.create_task(self._supervise(n, forks)) for n in range(count)]
                try:
                    yield
                finally:
                    for task in supervisors:
                        task.cancel()
        finally:
            await forks.stop()

    async def _supervise(self, number: int, forks: ForkServer) -> None:
        command = Command(
            f"executor {number}",
            (sys.executable, "-m", "tests.crashes.crashing_executor", str(self.folder)),
            self.folder / f"executor-{number}.log",
            env={**os.environ, **self.stack.credentials("executor")},
            cwd=HERE.parents[1],
            stop_within=5.0,
            launcher=forks,
        )
        while True:
            child = await ChildProcess.start(command)
            self._executors[number] = child.pid
            try:
                code = await child.wait()
            finally:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGCONT)
                await child.stop()
            if code != -signal.SIGKILL:
                raise UnplannedExit(f"an executor ended with {code}, see {command.log}")


def key_of(name: str) -> str:
    """Convert a name into an idempotency key."""
    return name.translate(str.maketrans({" ": "-", ",": None, ":": None}))


def workflow_of(run: str) -> UUID:
    """The id of the workflow that runs under this name."""
    return ids.workflow_id(SCOPE, "local", run)


def _run(call: object) -> object:
    return call["args"]["run"]  # type: ignore[index]


@asynccontextmanager
async def crash_stack(home: Path) -> AsyncGenerator[CrashStack]:
    """Run the stack without executors, with a crashing gateway and a counting tool server."""
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
            _with_crashing_gateway(service, folder)
            for service in pml_services()
            if service.name != "executor"
        ],
    )
    async with (
        embedded_stack(options) as stack,
        httpx2.AsyncClient(base_url=stack.url, timeout=2 * RUN_WITHIN_S) as http,
    ):
        bus = await NatsBus.connect(
            stack.nats_url, service="executor", identity=stack_identity(stack.home)
        )
        await _redeliver_soon(stack.nats_url)
        try:
            await eventually(lambda: _listed(http, {"mark", "look", "refuse", "pay"}))
            yield CrashStack(stack, http, bus, CrashLog(folder), folder)
        finally:
            await bus.drain()


async def _redeliver_soon(url: str) -> None:
    """Give the executor's consumers a shorter ack wait, as the operator."""
    client = Client()
    await client.connect(url)
    for consumer in CONSUMERS:
        if consumer.service == "executor":
            await set_up(client, replace(consumer, ack_wait_s=ACK_WAIT_S))
    await client.close()


def _with_crashing_gateway(service: ServiceSpec, folder: Path) -> ServiceSpec:
    """Replace the gateway by one that crashes at planned points; other services are unchanged."""
    if service.name != GATEWAY:
        return service
    argv = (sys.executable, "-m", "tests.crashes.crashing_gateway", str(folder))
    return replace(service, argv=argv, env={**service.env, "PYTHONPATH": str(HERE.parents[1])})


async def _listed(http: httpx2.AsyncClient, tools: Iterable[str]) -> bool:
    """Whether the registry, which gets them after the gateway, has listed the tools."""
    question = {"intent": "change something, call it again", "type": "tool"}
    found = await http.post("/api/discover", json=question)
    listed = {hit["id"] for hit in found.json().get("hits", ())}
    return listed >= {f"tally:{tool}" for tool in tools}
