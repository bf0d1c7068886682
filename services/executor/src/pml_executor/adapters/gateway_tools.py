"""Tool calls through the gateway, asked again with the same key until it answers."""

import asyncio

from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Asker
from pml_common.contracts.catalog import CALL_TOOL
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_executor.ports import GatewayUnreachable

_RETRY_DELAYS_S = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 8.0)
_REPLY_MARGIN_S = 5.0


class GatewayTools:
    """Asks `gateway.call-tool`; the gateway keeps outcomes by idempotency key."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    async def call(self, query: CallTool) -> ToolOutcome:
        """See Tools. What the gateway says it cannot do is the tool's failure; where it broke
        while doing it, nobody knows how the call ended."""
        reason = ""
        for delay in _RETRY_DELAYS_S:
            try:
                return await self._asker.ask(
                    CALL_TOOL, query, timeout=query.timeout_s + _REPLY_MARGIN_S
                )
            except QueryFailed as failure:
                if failure.code != "unavailable":
                    status = "unknown" if failure.code == "internal" else "tool_error"
                    return ToolOutcome(status=status, message=failure.message)
                reason = failure.message
            await asyncio.sleep(delay)
        raise GatewayUnreachable(
            f"the gateway cannot be reached, so it is not known whether {query.tool} was called: "
            f"{reason}"
        )
