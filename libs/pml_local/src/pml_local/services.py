"""Services as parts: data that says how to run one, and the HTTP probe that awaits it."""

import asyncio
import json
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pml_local.environment import FOR_MCP_SERVERS
from pml_local.errors import PortTakenError
from pml_local.folder import DataFolder
from pml_local.ports import LOOPBACK, free_port, listening
from pml_local.process import Command

PROBE_SECONDS = 3.0
_MOST_MOVES = 4
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
    socket_variable: str | None = None
    """Names the variable for the file descriptor of the listening socket, if it is to be held for
    the service: then connections wait while it restarts, instead of being refused."""


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
            stop_within=25.0,
            stores=True,
            variables=FOR_MCP_SERVERS,
            socket_variable="PML_GATEWAY_LISTEN_FD",
        ),
    )


class Service:
    """A service on its port, as a part of one stack."""

    def __init__(
        self,
        spec: ServiceSpec,
        port: int,
        folder: DataFolder,
        env: Callable[[], Mapping[str, str]],
        *,
        named: bool = False,
    ) -> None:
        """`env` tells its environment once the servers have their ports; a port that was `named`
        by somebody stays."""
        self.name = spec.name
        self.port = port
        self.start_within = spec.start_within
        self._spec = spec
        self._log = folder.log(spec.name)
        self._env = env
        self._named = named
        self._listener: socket.socket | None = None

    def move(self) -> bool:
        """Choose another port, unless this one was named or is held."""
        if self._named or self._listener is not None:
            return False
        self.port = free_port()
        return True

    async def prepare(self) -> Command:
        """How it runs on its port, with the socket that is held for it."""
        spec, listener = self._spec, self._listener
        env = {**self._env(), **spec.env, spec.port_variable: str(self.port)}
        fds: tuple[int, ...] = ()
        if listener is not None and spec.socket_variable is not None:
            fds = (listener.fileno(),)
            env[spec.socket_variable] = str(listener.fileno())
        return Command(
            spec.name, spec.argv, self._log, env=env, stop_within=spec.stop_within, pass_fds=fds
        )

    def hold(self) -> None:
        """Open the socket that the service takes connections from, if it takes one: they wait while
        it is not there. Raises PortTakenError."""
        if self._spec.socket_variable is None or self._listener is not None:
            return
        for _ in range(_MOST_MOVES):
            try:
                self._listener = listening(self.port)
                return
            except PortTakenError:
                if not self.move():
                    raise
        self._listener = listening(self.port)

    def release(self) -> None:
        """Close that socket: connections are refused where nobody listens."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def problem(self, pid: int) -> str | None:
        """None when `/healthz` answers 200 from this very process: the port may be another's."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                answer = await get(self.port, "/healthz")
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


async def get(port: int, path: str) -> str:
    """One HTTP response of a local server, as text."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        request = f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        return (await reader.read()).decode(errors="replace")
    finally:
        writer.close()
