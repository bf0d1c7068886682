"""Whole gateways on real NATS and Postgres, with fakes of the other services."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2

from libs.pml_common.tests.support.harness import write_key_files
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts.gateway import CallTool, ToolsListed
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import Argument, LiteralArgument, StaticStructure, TaskNode
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.storage.schema import open_scoped_schema
from pml_gateway.adapters.postgres.workflows import PostgresWorkflowStore
from pml_gateway.adapters.stub_tools import ECHO
from pml_gateway.app import serve
from pml_gateway.settings import GatewaySettings
from pml_local.ports import free_port
from services.gateway.tests.support.builders import SCOPE, analyzed, workflow
from services.gateway.tests.support.calling import call, running
from services.gateway.tests.support.fakes import FakeServices
from services.gateway.tests.support.harness import APPROVER, APPROVER_KEY, Json, settings

STUB = {"gateway_stub_tools": True, "gateway_sweep_every_s": 0.05}


@dataclass
class Gateway:
    """One gateway, its bus and a client."""

    settings: GatewaySettings
    bus: NatsBus
    http: httpx2.AsyncClient

    async def execute(self, code: str = "return 1;", **more: object) -> Json:
        """POST /api/execute and expect success."""
        answer = await self.http.post("/api/execute", json={"code": code, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def workflow(self, workflow_id: object) -> Json:
        """GET /api/workflows/{id} and expect success."""
        answer = await self.http.get(f"/api/workflows/{workflow_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def decide(self, workflow_id: object, decision: str, **more: object) -> httpx2.Response:
        """POST /api/workflows/{id}/approval."""
        body = {"decision": decision, **more}
        path = f"/api/workflows/{workflow_id}/approval"
        return await self.http.post(path, json=body, headers=APPROVER)

    async def ends(self, workflow_id: object, status: str, within: float = PATIENCE_S) -> Json:
        """Return the workflow once it has this status."""

        async def ended() -> Json | None:
            found = await self.workflow(workflow_id)
            return found if found["status"] == status else None

        return await eventually(ended, within=within)


@asynccontextmanager
async def gateway(nats_url: str, dsn: str, **changed: object) -> AsyncGenerator[Gateway]:
    """Run a gateway until the context exits; it stops as a process does."""
    chosen = settings(
        nats_url=nats_url, postgres_dsn=dsn, gateway_port=free_port(), **{**STUB, **changed}
    )
    url = f"http://127.0.0.1:{chosen.gateway_port}"
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        chosen = chosen.model_copy(
            update={"signing_key": Path(write_key_files(folder, "gateway")["PML_SIGNING_KEY"])}
        )
        http = await stack.enter_async_context(httpx2.AsyncClient(base_url=url, timeout=PATIENCE_S))
        bus = await NatsBus.connect(nats_url, service="gateway", identity=all_services_identity())
        await stack.enter_async_context(serve(chosen, bus))
        stack.push_async_callback(bus.drain, 2.0)
        yield Gateway(chosen, bus, http)


@asynccontextmanager
async def peers(
    nats_url: str, tools: Sequence[ToolDefinition] = (ECHO,)
) -> AsyncGenerator[FakeServices]:
    """Run the fakes of the other services until the context exits."""
    bus = await NatsBus.connect(nats_url, service="peers", identity=all_services_identity())
    scripted = FakeServices(bus, tools)
    await scripted.start()
    try:
        yield scripted
    finally:
        scripted.release.set()
        await bus.drain(2.0)


def servers_file(folder: Path, servers: Mapping[str, object]) -> Path:
    """Write an `mcpServers` file."""
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return file


def process_environment(
    nats_url: str, dsn: str, port: int, folder: Path, **more: str
) -> dict[str, str]:
    """Return the environment of a gateway process; its keys are in `folder`."""
    return {
        **write_key_files(folder, "gateway"),
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PML_NATS_URL": nats_url,
        "PML_POSTGRES_DSN": dsn,
        "PML_GATEWAY_PORT": str(port),
        "PML_GATEWAY_ORG": SCOPE.org,
        "PML_GATEWAY_PROJECT": SCOPE.project,
        "PML_GATEWAY_STUB_TOOLS": "true",
        "PML_GATEWAY_APPROVER_KEY_SHA256": hashlib.sha256(APPROVER_KEY.encode()).hexdigest(),
        **more,
    }


@asynccontextmanager
async def gateway_process(
    environment: dict[str, str],
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Start a gateway process and wait until it is ready; kill it at the end if it still runs."""
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pml_gateway", env=environment
    )
    url = f"http://127.0.0.1:{environment['PML_GATEWAY_PORT']}"
    try:
        async with httpx2.AsyncClient(base_url=url) as http:

            async def ready() -> bool:
                assert started.returncode is None
                try:
                    health = await http.get("/healthz")
                except httpx2.TransportError:
                    return False
                servers = health.json()["mcp_servers"].values()
                return health.status_code == 200 and set(servers) <= {"ready"}

            await eventually(ready)
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


async def listed_tools(bus: NatsBus, scope: Scope = SCOPE) -> dict[str, ToolDefinition]:
    """Return the tools of the server `box`, by name, once a gateway has listed them."""
    stated = [each.message for each in await bus.history(scope, "box")]
    lists = [each.tools for each in stated if isinstance(each, ToolsListed)]
    return {tool.name: tool for tool in lists[-1]} if lists else {}


async def stored_call(
    dsn: str, tool: ToolDefinition, args: JsonObject, scope: Scope = SCOPE
) -> CallTool:
    """Store an approved run and build its call of a tool."""
    new = workflow(at=datetime.now(UTC), scope=scope)
    analysis = analyzed(new, "ask", (tool,))
    shown: dict[str, Argument] = {name: LiteralArgument(value=args[name]) for name in args}
    node = TaskNode(id="n1", tool=tool.tool_id, line=1, column=1, arguments=shown)
    structure = StaticStructure(nodes=(node,))
    run = running(new, analysis.model_copy(update={"structure": structure}), {tool.tool_id: tool})
    async with open_scoped_schema(dsn, "gateway", "pml_gateway") as pool:
        store = PostgresWorkflowStore(pool)
        await store.accept(new, (new.requested,))
        await store.change(scope, new.workflow_id, lambda _: (replace(run, approval=None), ()))
    return call(run, tool, args, node_id="n1")
