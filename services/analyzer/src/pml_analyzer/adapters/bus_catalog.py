"""The catalogue, asked for over the bus and kept for a while."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pml_analyzer.domain.toolbox import Tools
from pml_analyzer.ports import CatalogUnavailable
from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Asker
from pml_common.contracts.catalog import LIST_TOOLS
from pml_common.contracts.registry import ListTools
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition

_MOST_SCOPES: Final = 256


@dataclass(frozen=True)
class _Copy:
    tools: Tools
    asked_at: float


class BusCatalog:
    """See Catalog. A copy serves for `max_age_s` seconds at most."""

    def __init__(
        self, bus: Asker, *, max_age_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bus = bus
        self._max_age_s = max_age_s
        self._clock = clock
        self._copies: OrderedDict[Scope, _Copy] = OrderedDict()
        self._drops = 0

    async def tools(self, scope: Scope) -> Sequence[ToolDefinition]:
        """See Catalog."""
        copy = self._copies.get(scope)
        if copy is not None and self._clock() - copy.asked_at <= self._max_age_s:
            self._copies.move_to_end(scope)
            return copy.tools
        return await self.reread(scope)

    async def reread(self, scope: Scope) -> Sequence[ToolDefinition]:
        """See Catalog."""
        asked_at, drops = self._clock(), self._drops
        try:
            reply = await self._bus.ask(LIST_TOOLS, ListTools(scope=scope))
        except QueryFailed as failure:
            raise CatalogUnavailable(f"the tools of {scope}: {failure}") from failure
        tools = Tools(reply.tools)
        if drops == self._drops:  # else the answer may be older than the change
            self._copies[scope] = _Copy(tools, asked_at)
            self._copies.move_to_end(scope)
            if len(self._copies) > _MOST_SCOPES:
                self._copies.popitem(last=False)
        return tools

    def drop(self, scope: Scope) -> None:
        """See Catalog."""
        self._drops += 1
        self._copies.pop(scope, None)
