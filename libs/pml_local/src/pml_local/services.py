"""Services as parts: how to run each, and the HTTP probe of its readiness."""

import asyncio
import json
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from pml_common.contracts.catalog import SERVICES
from pml_local.environment import FOR_MCP_SERVERS
from pml_local.errors import PortTakenError, ProgramMissingError
from pml_local.folder import DataFolder
from pml_local.fork_server import SHARED
from pml_local.ports import LOOPBACK, free_port, is_free, listening
from pml_local.postgres_cluster import ROLES
from pml_local.process import Command, Launcher

PROBE_SECONDS = 3.0
_MOST_MOVES = 4
GATEWAY = "gateway"
GATEWAY_PORT = 8080
_HEALTH_PORT = "PML_HEALTH_PORT"


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """One service: its program, its environment, and the variable that sets its port.

    Of the user's variables it gets the common ones (environment.py), its own settings and those
    named in `variables`, and its credentials (composition.py).

    When ready it must answer `GET /healthz` on 127.0.0.1 with 200 and a JSON object with its `pid`,
    on the port named by `port_variable`.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    port_variable: str = _HEALTH_PORT
    start_within: float = 60.0
    stop_within: float = 15.0
    variables: Sequence[str] = ()
    preloads: Sequence[str] = ()
    """Modules that the fork server imports before it runs a service of this Python."""

    socket_variable: str | None = None
    """Name of the variable for the inherited listening socket's file descriptor. With such a
    socket, connections wait during a restart instead of being refused."""

    @property
    def is_module(self) -> bool:
        """Whether it is a module for this Python, which the fork server can run."""
        return tuple(self.argv[:2]) == (sys.executable, "-m")

    @property
    def has_schema(self) -> bool:
        """Whether the stack applies the migrations of a schema of its name."""
        return self.name in ROLES and self.is_module


def pml_services() -> tuple[ServiceSpec, ...]:
    """The five services of PML. Raises ProgramMissingError: they are an extra of the command."""
    for name in SERVICES:
        if find_spec(f"pml_{name}") is None:
            raise ProgramMissingError(f"the service pml_{name}", "pml-stack[local]")
    gateway_env = {"PML_GATEWAY_HOST": LOOPBACK}
    return (
        *(
            ServiceSpec(name, (sys.executable, "-m", f"pml_{name}"), preloads=SHARED)
            for name in SERVICES
            if name != GATEWAY
        ),
        ServiceSpec(
            GATEWAY,
            (sys.executable, "-m", "pml_gateway"),
            gateway_env,
            "PML_GATEWAY_PORT",
            stop_within=25.0,
            variables=FOR_MCP_SERVERS,
            preloads=SHARED,
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
        """`env` returns its environment, called once the servers have their final ports; a port
        that was `named` explicitly never changes."""
        self.name = spec.name
        self.port = port
        self.start_within = spec.start_within
        self._spec = spec
        self._log = folder.log(spec.name)
        self._env = env
        self._named = named
        self._listener: socket.socket | None = None
        self.launcher: Launcher | None = None
        """Starts its process, if it is a module; None: its program is run."""
        self._health_port = port if spec.port_variable == _HEALTH_PORT else free_port()

    @property
    def metrics_url(self) -> str:
        """The address of its metrics: on its health port, which the gateway has beside its own."""
        port = self.port if self._spec.port_variable == _HEALTH_PORT else self._health_port
        return f"http://{LOOPBACK}:{port}/metrics"

    def move(self) -> bool:
        """Choose another port; False when it was named explicitly or is already bound."""
        if self._named or self._listener is not None:
            return False
        self.port = free_port()
        return True

    async def prepare(self) -> Command:
        """Build its command, with its port and its inherited socket."""
        spec, listener = self._spec, self._listener
        if spec.port_variable != _HEALTH_PORT and not is_free(self._health_port):
            self._health_port = free_port()
        ports = {_HEALTH_PORT: str(self._health_port), spec.port_variable: str(self.port)}
        env = {**self._env(), **spec.env, **ports}
        fds: tuple[int, ...] = ()
        if listener is not None and spec.socket_variable is not None:
            fds = (listener.fileno(),)
            env[spec.socket_variable] = str(listener.fileno())
        return Command(
            spec.name,
            spec.argv,
            self._log,
            env=env,
            stop_within=spec.stop_within,
            pass_fds=fds,
            launcher=self.launcher if self._spec.is_module else None,
        )

    def hold(self) -> None:
        """Open the inherited listening socket, if it uses one: connections wait while the service
        is down. Raises PortTakenError."""
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
        """Close that socket; connections are then refused while the service is down."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def problem(self, pid: int) -> str | None:
        """None when `/healthz` answers 200 from this very process (another process may have the
        port)."""
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
        return "(unknown)"


async def get(port: int, path: str) -> str:
    """Send a GET to a local server and return the raw HTTP response."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        request = f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        return (await reader.read()).decode(errors="replace")
    finally:
        writer.close()
