"""Queries to services that may be away for a moment: restarting, or not started yet."""

import asyncio
from typing import Final, TypeVar

from typing_extensions import override

from pml_common.bus.errors import NoResponder
from pml_common.bus.port import QueryClient
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType

Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)

_PAUSES_S: Final = (0.02, 0.05, 0.1, 0.2)


class RetryingQueryClient(QueryClient):
    """Repeats a query while no service responds, for `patience_s` seconds."""

    def __init__(self, query_client: QueryClient, patience_s: float) -> None:
        self._query_client = query_client
        self._patience_s = patience_s

    @override
    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        """Send a query; `timeout` is for the reply, once the service is there. Raises
        QueryFailed."""
        clock = asyncio.get_running_loop().time
        deadline, tries = clock() + self._patience_s, 0
        while True:
            try:
                return await self._query_client.request(query_type, query, timeout=timeout)
            except NoResponder:
                pause = _PAUSES_S[min(tries, len(_PAUSES_S) - 1)]
                if clock() + pause > deadline:
                    raise
            tries += 1
            await asyncio.sleep(pause)
