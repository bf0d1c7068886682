"""Tool calls through the gateway, requested with the same key until it answers."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from time import monotonic
from uuid import UUID

from typing_extensions import override

from pml_common.bus.errors import NoResponder, QueryFailed
from pml_common.bus.port import QueryClient
from pml_common.contracts.catalog import CALL_TOOL
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.health import detail
from pml_common.outages import Outage, downtime_since, no_outages
from pml_executor.ports import GatewayUnreachable, Tools

_REQUEST_TIMEOUT_S = 5.0
_RETRY_DELAYS_S = (0.05, 0.1, 0.3, 1.0)
_REPLY_MARGIN_S = 5.0


class GatewayTools(Tools):
    """Sends `gateway.call-tool` queries; the gateway stores outcomes by idempotency key."""

    def __init__(
        self, query_client: QueryClient, outages: Callable[[], Sequence[Outage]] = no_outages
    ) -> None:
        self._query_client = query_client
        self._outages = outages
        self._unserved: dict[UUID, Scope] = {}

    @override
    async def call(self, query: CallTool) -> ToolOutcome:
        """Make the call and return its outcome. Raises GatewayUnreachable.

        A failed query is the tool's failure (`tool_error`); after an internal error of the gateway
        the outcome is `unknown`. Each request has a short timeout: a gateway that died with the
        query never answers it, and a live one treats a repeated query as the first one. Time in
        which the bus is unavailable does not count; the run's own time bounds it. A call whose
        scope no gateway serves waits for one.
        """
        try:
            return await self._call(query)
        finally:
            self._unserved.pop(query.idempotency_key, None)

    async def check(self) -> str | None:
        """Name the scopes without a gateway of which calls wait; they are no fault of ours."""
        scopes = ", ".join(sorted({str(each) for each in self._unserved.values()}))
        return detail(f"calls wait, for no gateway serves {scopes}" if scopes else None)

    async def _call(self, query: CallTool) -> ToolOutcome:
        began = monotonic()
        reason = "no time was left"
        for delay in chain(_RETRY_DELAYS_S, repeat(_RETRY_DELAYS_S[-1])):
            away = downtime_since(self._outages(), began)
            left = began + query.timeout_s + _REPLY_MARGIN_S + away - monotonic()
            if left <= 0:
                break
            try:
                return await self._query_client.request(
                    CALL_TOOL, query, timeout=min(_REQUEST_TIMEOUT_S, left)
                )
            except QueryFailed as failure:
                if failure.code != "unavailable":
                    status = "unknown" if failure.code == "internal" else "tool_error"
                    return ToolOutcome(status=status, message=failure.message)
                reason = failure.message
                self._unserved.pop(query.idempotency_key, None)
                if isinstance(failure, NoResponder):
                    self._unserved[query.idempotency_key] = query.scope
            query = query.model_copy(update={"asked_first_at": None})
            await asyncio.sleep(delay)
        raise GatewayUnreachable(
            f"the gateway cannot be reached, so it is not known whether {query.tool} was called: "
            f"{reason}"
        )
