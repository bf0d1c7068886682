"""Services as parts: data that says how to run one, and the HTTP probe that awaits it."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pml_local.environment import FOR_MCP_SERVERS
from pml_local.folder import DataFolder
from pml_local.ports import LOOPBACK
from pml_local.process import Command

PROBE_SECONDS = 3.0
GATEWAY = "gateway"
GATEWAY_PORT = 8080
STORES = {"registry": True, "analyzer": False, "learner": True, "executor": False}
"""The services beside the gateway, and whether they keep something in Postgres."""


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """One service: its program, its own environment, and how it is told where to listen.

    Of the user's variables it gets the common ones (environment.py), its own settings and what
    `variables` names; with `stores` it is told where Postgres is.

    It must answer `GET /healthz` on 127.0.0.1 with 200 and a JSON object with its `pid` when it is
    ready, on the port named by the variable `port_variable`.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    port_variable: str = "PML_HEALTH_PORT"
    start_within: float = 60.0
    stop_within: float = 15.0
    stores: bool = False
    variables: Sequence[str] = ()


def pml_services() -> tuple[ServiceSpec, ...]:
    """The five services of PML."""
    gateway_env = {"PML_GATEWAY_HOST": LOOPBACK, "PML_HEALTH_PORT": "0"}
    return (
        *(
            ServiceSpec(name, (sys.executable, "-m", f"pml_{name}"), stores=stores)
            for name, stores in STORES.items()
        ),
        ServiceSpec(
            GATEWAY,
            (sys.executable, "-m", "pml_gateway"),
            gateway_env,
            "PML_GATEWAY_PORT",
            stores=True,
            variables=FOR_MCP_SERVERS,
        ),
    )


class Service:
    """A service on its port, as a part of one stack."""

    def __init__(
        self, spec: ServiceSpec, port: int, folder: DataFolder, env: Mapping[str, str]
    ) -> None:
        self.name = spec.name
        self.port = port
        self.start_within = spec.start_within
        self._command = Command(
            spec.name,
            spec.argv,
            folder.log(spec.name),
            env={**env, **spec.env, spec.port_variable: str(port)},
            stop_within=spec.stop_within,
        )

    async def prepare(self) -> Command:
        """Nothing to prepare."""
        return self._command

    async def problem(self, pid: int) -> str | None:
        """None when `/healthz` answers 200 from this very process: the port may be another's."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                answer = await _get(self.port, "/healthz")
        except (OSError, TimeoutError) as error:
            return f"/healthz does not answer: {error!r}"
        head, _, body = answer.partition("\r\n\r\n")
        status = head.partition("\r\n")[0]
        if status.split(" ")[1:2] == ["200"]:
            theirs = _pid(body)
            return None if theirs == pid else f"process {theirs} answers on port {self.port}"
        return f"/healthz answers {status}: {body[:500]}"


def _pid(body: str) -> object:
    try:
        return json.loads(body)["pid"]
    except (ValueError, KeyError, TypeError):
        return "of somebody else"


async def _get(port: int, path: str) -> str:
    """One HTTP response of a local server, as text."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        request = f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        return (await reader.read()).decode(errors="replace")
    finally:
        writer.close()
