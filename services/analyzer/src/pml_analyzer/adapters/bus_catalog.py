"""The tool catalog, queried over the bus and cached."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from typing_extensions import override

from pml_analysis.decision.toolbox import Tools
from pml_analyzer.ports import Catalog, CatalogUnavailable
from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import QueryClient
from pml_common.contracts.catalog import LIST_TOOLS
from pml_common.contracts.registry import ListTools
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.reply_cache import ReplyCache

_MAX_SCOPES: Final = 256


class BusCatalog(Catalog):
    """The tool catalog from the registry. A cached answer serves for `max_age_s` seconds at
    most."""

    def __init__(
        self, bus: QueryClient, *, max_age_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bus = bus
        self._cache = ReplyCache[Scope, Tools](
            max_age_s=max_age_s, max_entries=_MAX_SCOPES, clock=clock
        )

    @override
    async def tools(self, scope: Scope) -> Sequence[ToolDefinition]:
        copy = self._cache.get(scope)
        return await self.refresh(scope) if copy is None else copy

    @override
    async def refresh(self, scope: Scope) -> Sequence[ToolDefinition]:
        moment = self._cache.begin_query()
        try:
            reply = await self._bus.request(LIST_TOOLS, ListTools(scope=scope))
        except QueryFailed as failure:
            raise CatalogUnavailable(f"the tools of {scope}: {failure}") from failure
        tools = Tools(reply.tools, reply.quarantined)
        self._cache.put(moment, scope, tools)
        return tools

    @override
    def invalidate(self, scope: Scope) -> None:
        self._cache.invalidate(lambda key: key == scope)
