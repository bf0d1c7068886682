"""The embedded stack with its tool servers, ready for a campaign."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import httpx2
from nats.aio.client import Client

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import connection
from pml_common.bus.write_check import every_subject, refusal
from pml_local.approver import approver_headers
from pml_local.composition import StackOptions
from pml_local.ports import LOOPBACK, free_port
from pml_local.process import ChildProcess, Command
from pml_local.services import ServiceSpec, pml_services
from pml_local.stack import Stack, embedded_stack
from tests.crashes.caller import Caller
from tests.crashes.programs import CAPABILITIES
from tests.faults import skewed_executor
from tests.faults.skewed_executor import make_skew

ROOT = Path(__file__).parents[2]
TOOL_SERVER = ROOT / "tests" / "crashes" / "tool_server.py"
READY_WITHIN_S = PATIENCE_S
DISK = "4g"
"""Size of the memory disk for the bus, if there is one."""


class HttpTools:
    """A tool server outside the stack, which can be unavailable."""

    name = "depot"

    def __init__(self, calls: Path, log: Path) -> None:
        self.port = free_port()
        argv = (sys.executable, str(TOOL_SERVER), str(calls), self.name, str(self.port))
        self._command = Command(self.name, argv, log, env=dict(os.environ), stop_within=5.0)
        self._process: ChildProcess | None = None

    @property
    def pid(self) -> int:
        """Its pid. Raises RuntimeError while it does not run."""
        if self._process is None:
            raise RuntimeError(f"{self.name} does not run")
        return self._process.pid

    async def start(self) -> None:
        """Start it and wait until it listens."""
        self._process = await ChildProcess.start(self._command)
        await eventually(self._listens, within=READY_WITHIN_S)

    async def kill(self) -> None:
        """SIGKILL it."""
        if self._process is not None:
            await self._process.kill()
            self._process = None

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection(LOOPBACK, self.port)
        except OSError:
            return False
        writer.close()
        return True


@dataclass
class Site:
    """The stack under test. `poison` are the stored messages that the campaign published, by stream
    and sequence; `poisoned` the workflows that it poisoned, and how; `under_way` those that are
    running."""

    stack: Stack
    http: httpx2.AsyncClient
    client: Client
    depot: HttpTools
    calls: Path
    skew: Path
    disk: Path | None
    poison: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    poisoned: dict[UUID, str] = field(default_factory=dict[UUID, str])
    under_way: dict[UUID, str] = field(default_factory=dict[UUID, str])

    @property
    def approver(self) -> dict[str, str]:
        """Headers of a decision."""
        return approver_headers(self.stack.approver_key)

    async def problems(self) -> dict[str, str]:
        """Parts that do not run or are not healthy, with the reason."""
        parts = self.stack.parts
        names = [spec.name for spec in pml_services()]
        found = {
            name: "it does not run" for name in ("nats", "postgres", *names) if name not in parts
        }
        answers = await asyncio.gather(
            *(self._problem(name, parts[name].port) for name in names if name in parts)
        )
        found |= {name: problem for name, problem in answers if problem is not None}
        # Services try writes too rarely to tell that one succeeds again.
        refused = await refusal(self.client, every_subject())
        return found if refused is None else {**found, "nats": refused}

    async def _problem(self, name: str, port: int) -> tuple[str, str | None]:
        try:
            answer = await self.http.get(
                f"http://{LOOPBACK}:{port}/healthz", timeout=5.0
            )  # waits: else it is frozen
        except httpx2.TransportError as error:
            return name, repr(error)
        problem = _away(answer.json()) if answer.is_success else answer.text[:300]
        return name, problem

    async def learn(self) -> None:
        """Learn the capabilities that programs call by name."""
        caller = Caller(self.http, approver=self.approver)
        for name, code in CAPABILITIES.items():
            args = {"n": 1, "tool": "tally:pay", "linger": 0}
            await caller.execute(code, f"learns-{name.replace(':', '-')}", dict(args), name=name)
            await eventually(lambda name=name: self._is_known(name), within=READY_WITHIN_S)

    async def _is_known(self, capability: str) -> bool:
        return (await self.http.get(f"/api/capabilities/{capability}")).is_success


def _away(health: dict[str, object]) -> str | None:
    """Tool servers that are unavailable; the gateway reports them and is healthy without them."""
    servers = health.get("mcp_servers")
    told = servers.items() if isinstance(servers, dict) else ()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    away = [f"{name}: {state}" for name, state in told if not str(state).startswith("ready")]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return "; ".join(away) or None


@asynccontextmanager
async def site(home: Path, *, disk: bool) -> AsyncGenerator[Site]:
    """Run a temporary stack with two tool servers, one of them its gateway's child; with `disk` its
    bus stores on a memory disk, which needs root."""
    folder = home / "faults"
    folder.mkdir(parents=True)
    calls, skew = folder / "calls.jsonl", folder / "skew"
    make_skew(skew)
    depot = HttpTools(calls, folder / "depot.log")
    options = StackOptions(
        home=home / "data",
        gateway_port=free_port(),
        mcp_servers=_servers(folder, calls, depot.port),
        env={"PML_GATEWAY_POLICY_FILE": str(_policy(folder))},
        services=[_skewed(service, skew) for service in pml_services()],
    )
    with _memory_disk(options.home, wanted=disk) as mounted:
        await depot.start()
        try:
            async with (
                embedded_stack(options) as stack,
                httpx2.AsyncClient(base_url=stack.url, timeout=2 * PATIENCE_S) as http,
            ):
                client = await _operator(stack.nats_url)
                try:
                    ready = Site(stack, http, client, depot, calls, skew, mounted)
                    await eventually(lambda: _is_listed(http), within=READY_WITHIN_S)
                    await ready.learn()
                    yield ready
                finally:
                    await client.close()
        finally:
            await depot.kill()


async def _operator(url: str) -> Client:
    async def nothing() -> None:
        """Ignore reconnections."""

    return await connection.connect(url, "campaign", nothing, 30.0, inbox="_INBOX.campaign")


def _servers(folder: Path, calls: Path, port: int) -> Path:
    tally = {"command": sys.executable, "args": [str(TOOL_SERVER), str(calls)], "trust": "hints"}
    depot = {"url": f"http://{LOOPBACK}:{port}/mcp", "trust": "hints"}
    file = folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"tally": tally, "depot": depot}}))
    return file


def _policy(folder: Path) -> Path:
    rules = {"tally:pay": "ask", "tally:*": "allow", "depot:*": "allow"}
    file = folder / "policy.json"
    file.write_text(
        json.dumps({"rules": [{"pattern": tool, "verdict": rules[tool]} for tool in rules]})
    )
    return file


def _skewed(service: ServiceSpec, skew: Path) -> ServiceSpec:
    """Run the executor on an adjustable clock; other services are unchanged. By its path, so that
    it is not forked: what a fork server has imported would have read the right clock."""
    if service.name != "executor":
        return service
    return replace(service, argv=(sys.executable, skewed_executor.__file__, str(skew)))


async def _is_listed(http: httpx2.AsyncClient) -> bool:
    """Whether the registry, which gets them after the gateway, has listed the tools."""
    question = {"intent": "change something, call it again", "type": "tool", "limit": 50}
    found = await http.post("/api/discover", json=question)
    listed = {hit["id"] for hit in found.json().get("hits", ())}
    return {
        f"{server}:{tool}" for server in ("tally", "depot") for tool in ("mark", "put")
    } <= listed


@contextmanager
def _memory_disk(home: Path, *, wanted: bool) -> Generator[Path | None]:
    """Mount a disk for the bus; None if none is wanted or mounting is not permitted."""
    store = home / "nats" / "store"
    if not wanted or os.geteuid() != 0:
        yield None
        return
    store.mkdir(parents=True)
    home.chmod(0o711)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(store)]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield store
    finally:
        subprocess.run(["umount", str(store)], check=True)
