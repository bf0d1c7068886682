"""The servers of an `mcpServers` file, read at the start and again on demand."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from typing_extensions import override

from pml_common.service import CannotStart
from pml_gateway.adapters.mcp_client.announcements import OnOffers, OnTools
from pml_gateway.adapters.mcp_client.connection import Admit
from pml_gateway.adapters.mcp_client.server_calls import OnLog, ignore_log
from pml_gateway.adapters.mcp_client.server_pool import ServerPool, admit_all, ignore_offers
from pml_gateway.adapters.servers_file import read_file
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.servers.servers_file import ServersInvalid
from pml_gateway.ports import ConfiguredServers, Logins, Reloaded

log = logging.getLogger(__name__)


class ServersFile(ConfiguredServers):
    """A file, its present state, and the pool of its servers."""

    def __init__(self, file: Path | None, environment: Mapping[str, str], pool: ServerPool) -> None:
        self._file = file
        self._environment = environment
        self._pool = pool
        self._fault: str | None = None

    @property
    def fault(self) -> str | None:
        """Why the file could not be read again; None where its content is in force."""
        return self._fault

    @override
    async def reload(self) -> Reloaded:
        if self._file is None:
            raise Conflict("this gateway has no mcpServers file: set PML_MCP_SERVERS, and restart")
        try:
            entries = await asyncio.to_thread(read_file, self._file, self._environment)
        except ServersInvalid as error:
            self._fault = f"{error}; the servers of before stay"
            log.warning("%s", self._fault)
            raise Conflict(self._fault) from error
        self._fault = None
        return await self._pool.apply(entries)


@asynccontextmanager
async def configured_servers(
    file: Path | None,
    environment: Mapping[str, str],
    on_tools: OnTools,
    admit: Admit = admit_all,
    logins: Logins | None = None,
    on_offers: OnOffers = ignore_offers,
    on_log: OnLog = ignore_log,
) -> AsyncGenerator[tuple[ServerPool, ServersFile]]:
    """The servers of an `mcpServers` file, not started yet, disconnected when the context exits;
    none without a file. Entries with faults are set aside. Raises CannotStart for a file that
    cannot be read at all."""
    pool = ServerPool(
        environment=environment,
        on_tools=on_tools,
        on_offers=on_offers,
        on_log=on_log,
        admit=admit,
        logins=logins,
    )
    try:
        entries = await asyncio.to_thread(read_file, file, environment)
    except ServersInvalid as error:
        raise CannotStart(str(error)) from error
    await pool.apply(entries)
    try:
        yield pool, ServersFile(file, environment, pool)
    finally:
        await pool.close()
