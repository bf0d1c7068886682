"""The embedded stack with each service at the old or at the new revision."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import httpx2
from nats.aio.client import Client

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import connection
from pml_common.bus.names import DEAD_STREAM
from pml_common.contracts.catalog import SERVICES
from pml_local.approver import approver_headers
from pml_local.composition import StackOptions
from pml_local.folder import DataFolder
from pml_local.parts import start_on_free_port
from pml_local.ports import LOOPBACK, free_port
from pml_local.postgres_cluster import ROLES
from pml_local.services import GATEWAY, Service, pml_services
from pml_local.stack import Stack, embedded_stack

Side = Literal["old", "new"]
HERE = Path(__file__).parent
TOOL_SERVER = HERE.parent / "crashes" / "tool_server.py"
LAUNCH = (sys.executable, str(HERE / "launch.py"))
MIGRATE_WITHIN_S = PATIENCE_S
STORED = tuple(ROLES)
"""Services with a schema."""


def everywhere(side: Side) -> dict[str, Side]:
    """Return this side for every service."""
    return {service: side for service in SERVICES}


class CannotMigrate(Exception):
    """A `migrate` command failed."""


@dataclass
class MixedStack:
    """A running stack; `sides` says which revision each service runs."""

    stack: Stack
    http: httpx2.AsyncClient
    operator: Client
    calls: Path
    pythons: Mapping[Side, Path]
    sides: dict[str, Side] = field(default_factory=lambda: everywhere("old"))

    @property
    def url(self) -> str:
        """Address of the gateway."""
        return self.stack.url

    @property
    def approver(self) -> dict[str, str]:
        """Headers of a decision."""
        return approver_headers(self.stack.approver_key)

    async def put(self, sides: Mapping[str, Side]) -> None:
        """Restart each service that has to change, one after the other."""
        for service, side in sides.items():
            if self.sides[service] != side:
                self.sides[service] = side
                _choose(self.stack.home.parent, service, self.pythons, side)
                await self.stack.restart(service)

    async def migrate(self) -> None:
        """Run the new `migrate` command of each schema. Raises CannotMigrate."""
        for service in STORED:
            owners = {"PML_POSTGRES_DSN": self.stack.postgres_dsn}
            process = await asyncio.create_subprocess_exec(
                self.pythons["new"],
                *("-m", f"pml_{service}", "migrate"),
                env={**os.environ, **self._environment(service), **owners},
                stderr=asyncio.subprocess.PIPE,
            )
            _, told = await asyncio.wait_for(process.communicate(), MIGRATE_WITHIN_S)
            if process.returncode:
                raise CannotMigrate(f"{service}: {told.decode()}")

    @asynccontextmanager
    async def beside(self, sides: Mapping[str, Side]) -> AsyncGenerator[str]:
        """Run a second process of each service until the context exits; the value is the URL of the
        second gateway."""
        async with AsyncExitStack() as running:
            url = self.stack.url
            for service, side in sides.items():
                part = await running.enter_async_context(self._another(service, side))
                url = f"http://{LOOPBACK}:{part.port}" if service == GATEWAY else url
            yield url

    @asynccontextmanager
    async def _another(self, service: str, side: Side) -> AsyncGenerator[Service]:
        [spec] = [each for each in pml_services() if each.name == service]
        argv = (str(self.pythons[side]), "-m", f"pml_{service}")
        spec = replace(spec, name=f"{service} beside", argv=argv)
        env = {**os.environ, **self._environment(service)}
        part = Service(spec, free_port(), DataFolder(self.stack.home), lambda: env)
        process = await start_on_free_port(part)
        try:
            yield part
        finally:
            await process.stop()

    def _environment(self, service: str) -> dict[str, str]:
        return {**self.stack.credentials(service), **files_of(self.stack.home.parent)}

    async def dead_letters(self) -> int:
        """The number of messages that a service gave up."""
        streams = self.operator.jetstream()  # pyright: ignore[reportUnknownMemberType]
        return (await streams.stream_info(DEAD_STREAM)).state.messages


@asynccontextmanager
async def mixed_stack(folder: Path, pythons: Mapping[Side, Path]) -> AsyncGenerator[MixedStack]:
    """Run a stack whose services are all old, with a tool server that logs its calls."""
    calls = write_files(folder)
    for service in SERVICES:
        _choose(folder, service, pythons, "old")
    options = StackOptions(
        home=folder / "data",
        gateway_port=free_port(),
        env=files_of(folder),
        services=[
            replace(spec, argv=(*LAUNCH, spec.name, str(_side_file(folder, spec.name))))
            for spec in pml_services()
        ],
    )
    async with (
        embedded_stack(options) as stack,
        httpx2.AsyncClient(base_url=stack.url, timeout=2 * PATIENCE_S) as http,
    ):
        operator = await connection.connect(
            stack.nats_url, "upgrade", _nothing, 30.0, inbox="_INBOX.upgrade"
        )
        try:
            await eventually(lambda: lists_tools(http))
            yield MixedStack(stack, http, operator, calls, pythons)
        finally:
            await operator.close()


async def _nothing() -> None:
    """Ignore reconnections."""


async def lists_tools(http: httpx2.AsyncClient) -> bool:
    """Return whether a gateway finds the tool server's tools."""
    found = await http.post("/api/discover", json={"intent": "change something", "limit": 20})
    return found.is_success and "tally:mark" in found.text


def _side_file(folder: Path, service: str) -> Path:
    return folder / f"{service}.python"


def _choose(folder: Path, service: str, pythons: Mapping[Side, Path], side: Side) -> None:
    """The old schema is that of the old services' start; the new one is a phase of its own."""
    secret = folder / "data/secrets/postgres"
    lines = f"{pythons[side]}\n" + (f"{secret}\n" if side == "old" else "")
    _side_file(folder, service).write_text(lines, encoding="utf-8")


def files_of(folder: Path) -> dict[str, str]:
    """Return the variables that name the files of `write_files`."""
    return {
        "PML_GATEWAY_POLICY_FILE": str(folder / "policy.json"),
        "PML_MCP_SERVERS": str(folder / "servers.json"),
    }


def write_files(folder: Path) -> Path:
    """Write the policy and the servers of a stack; returns the log of its tool server's calls."""
    calls = folder / "calls.jsonl"
    calls.touch()
    tally = {"command": sys.executable, "args": [str(TOOL_SERVER), str(calls)], "trust": "hints"}
    rules = {"tally:pay": "ask", "tally:*": "allow"}
    contents = {
        "servers.json": {"mcpServers": {"tally": tally}},
        "policy.json": {"rules": [{"pattern": k, "verdict": v} for k, v in rules.items()]},
    }
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return calls
