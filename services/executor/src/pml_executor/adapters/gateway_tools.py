"""Tool calls through the gateway, asked again with the same key until it answers."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from time import monotonic

from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import QueryClient
from pml_common.contracts.catalog import CALL_TOOL
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.outages import Outage, downtime_since, no_outages
from pml_executor.ports import GatewayUnreachable

_SLICE_S = 5.0
_PAUSES_S = (0.05, 0.1, 0.3, 1.0)
_REPLY_MARGIN_S = 5.0


class GatewayTools:
    """Asks `gateway.call-tool`; the gateway keeps outcomes by idempotency key."""

    def __init__(
        self, query_client: QueryClient, outages: Callable[[], Sequence[Outage]] = no_outages
    ) -> None:
        self._query_client = query_client
        self._outages = outages

    async def call(self, query: CallTool) -> ToolOutcome:
        """See Tools. What the gateway says it cannot do is the tool's failure; where it broke
        while doing it, nobody knows how the call ended.

        Asked in short slices: a gateway that died with the question in hand never answers it, and
        one that lives takes a repeated question for the first one. The time in which the bus is
        away does not count; the run's own time bounds it.
        """
        began = monotonic()
        reason = "no time was left"
        for pause in chain(_PAUSES_S, repeat(_PAUSES_S[-1])):
            away = downtime_since(self._outages(), began)
            left = began + query.timeout_s + _REPLY_MARGIN_S + away - monotonic()
            if left <= 0:
                break
            try:
                return await self._query_client.request(
                    CALL_TOOL, query, timeout=min(_SLICE_S, left)
                )
            except QueryFailed as failure:
                if failure.code != "unavailable":
                    status = "unknown" if failure.code == "internal" else "tool_error"
                    return ToolOutcome(status=status, message=failure.message)
                reason = failure.message
            query = query.model_copy(update={"asked_first_at": None})
            await asyncio.sleep(pause)
        raise GatewayUnreachable(
            f"the gateway cannot be reached, so it is not known whether {query.tool} was called: "
            f"{reason}"
        )
