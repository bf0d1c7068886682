"""Routes tool calls to the pool that has the server; indexes all tools by id."""

from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue
from typing_extensions import override

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.ports import CallOrigin, KnownTools, ServerStatus, ToolServers

Observe = Callable[[ToolDefinition, str, JsonValue], None]
"""Gets a tool, the hash of its definition, and a result."""


def _none_withheld(tool: str) -> str | None:
    return None


class ToolRouter(KnownTools):
    """`withheld` explains why a tool is not offered; `observe` gets the results of successful
    calls."""

    def __init__(
        self,
        pools: Sequence[ToolServers],
        withheld: Callable[[str], str | None] = _none_withheld,
        observe: Observe | None = None,
    ) -> None:
        self._pools = pools
        self._withheld = withheld
        self._observe = observe
        self._indexed: dict[str, _Index] = {}

    @override
    async def call(
        self, tool_id: str, args: JsonObject, timeout_s: float, origin: CallOrigin
    ) -> ToolOutcome:
        """Call a tool on the pool that has its server; the last pool refuses unknown servers."""
        server = tool_id.partition(":")[0]
        pool = next((each for each in self._pools if server in each.status()), self._pools[-1])
        known = self._index_of(server).get(tool_id)
        outcome = await pool.call(tool_id, args, timeout_s, origin)
        if self._observe is not None and known is not None and outcome.status == "ok":
            self._observe(*known, outcome.result)
        return outcome

    @override
    def list_tools(self) -> Mapping[str, tuple[ToolDefinition, ...]]:
        return {name: tools for pool in self._pools for name, tools in pool.list_tools().items()}

    @override
    def status(self) -> Mapping[str, ServerStatus]:
        return {name: status for pool in self._pools for name, status in pool.status().items()}

    @override
    async def reach(self, server: str, timeout_s: float) -> None:
        for pool in self._pools:
            if server in pool.status():
                await pool.reach(server, timeout_s)

    @override
    def find(self, tool_id: str) -> ToolDefinition | None:
        found = self._index_of(tool_id.partition(":")[0]).get(tool_id)
        return found[0] if found else None

    @override
    def hash_of(self, tool_id: str) -> str | None:
        found = self._index_of(tool_id.partition(":")[0]).get(tool_id)
        return found[1] if found else None

    @override
    def withheld(self, tool: str) -> str | None:
        return self._withheld(tool)

    def _index_of(self, server: str) -> "Mapping[str, tuple[ToolDefinition, str]]":
        """Return a server's tools with their hashes, which are expensive: computed once per
        list."""
        listed = self.list_tools().get(server, ())
        known = self._indexed.get(server)
        if known is None or known.listed is not listed:
            known = self._indexed[server] = _Index(listed)
        return known.tools


class _Index:
    def __init__(self, listed: tuple[ToolDefinition, ...]) -> None:
        self.listed = listed
        self.tools = {tool.tool_id: (tool, tool.definition_hash) for tool in listed}
