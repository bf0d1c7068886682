"""All servers that have tools, as one; their tools at hand by id."""

from collections.abc import Mapping, Sequence

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.ports import ServerStatus, ToolServers


class ToolRouter:
    """See `ports.KnownTools`."""

    def __init__(self, pools: Sequence[ToolServers]) -> None:
        self._pools = pools
        self._indexed: dict[str, _Index] = {}

    async def call(self, tool_id: str, args: JsonObject, timeout_s: float) -> ToolOutcome:
        """See `ports.ToolCaller`; a server that nobody knows is for the last pool to deny."""
        server = tool_id.partition(":")[0]
        pool = next((each for each in self._pools if server in each.status()), self._pools[-1])
        return await pool.call(tool_id, args, timeout_s)

    def list_tools(self) -> Mapping[str, tuple[ToolDefinition, ...]]:
        """See `ports.ToolServers`."""
        return {name: tools for pool in self._pools for name, tools in pool.list_tools().items()}

    def status(self) -> Mapping[str, ServerStatus]:
        """See `ports.ToolServers`."""
        return {name: status for pool in self._pools for name, status in pool.status().items()}

    async def reach(self, server: str, timeout_s: float) -> None:
        """See `ports.ToolServers`."""
        for pool in self._pools:
            if server in pool.status():
                await pool.reach(server, timeout_s)

    def find(self, tool_id: str) -> ToolDefinition | None:
        """See `ports.KnownTools`."""
        found = self._index_of(tool_id.partition(":")[0]).get(tool_id)
        return found[0] if found else None

    def hash_of(self, tool_id: str) -> str | None:
        """See `ports.KnownTools`."""
        found = self._index_of(tool_id.partition(":")[0]).get(tool_id)
        return found[1] if found else None

    def _index_of(self, server: str) -> "Mapping[str, tuple[ToolDefinition, str]]":
        """A server's tools with their hashes, which are dear: made anew when the list is new."""
        listed = self.list_tools().get(server, ())
        known = self._indexed.get(server)
        if known is None or known.listed is not listed:
            known = self._indexed[server] = _Index(listed)
        return known.tools


class _Index:
    def __init__(self, listed: tuple[ToolDefinition, ...]) -> None:
        self.listed = listed
        self.tools = {tool.tool_id: (tool, tool.definition_hash) for tool in listed}
