"""The MCP servers that a file names."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from pml_common.service import CannotStart
from pml_gateway.adapters.mcp_client.server_pool import McpServers, OnTools
from pml_gateway.domain.servers.server_config import ServersInvalid, parse_servers

log = logging.getLogger(__name__)


@asynccontextmanager
async def configured_servers(
    file: Path | None, environment: Mapping[str, str], on_tools: OnTools
) -> AsyncGenerator[McpServers]:
    """The servers of an `mcpServers` file, not started yet, disconnected when the block ends; none
    without a file. Raises CannotStart, naming the file and every fault."""
    try:
        configured = parse_servers(_text_of(file), environment)
    except ServersInvalid as error:
        raise CannotStart(f"{file}: {error}") from error
    servers = McpServers(configured, environment=environment, on_tools=on_tools)
    try:
        yield servers
    finally:
        await servers.close()


def _text_of(file: Path | None) -> str:
    if file is not None and file.is_file():
        return file.read_text(encoding="utf-8")
    if file is not None:
        log.warning("there is no file %s, so there are no MCP servers", file)
    return '{"mcpServers": {}}'
