"""Analyses of programs, from a cache or from the analyzer."""

import hashlib
import logging
import time
from collections.abc import Callable
from typing import Final

from typing_extensions import override

from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import QueryClient
from pml_common.contracts.analyzer import AnalysisRejected, AnalyzeProgram, ExecutionAnalyzed
from pml_common.contracts.catalog import ANALYZE
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.tool import ToolDefinition
from pml_common.reply_cache import ReplyCache
from pml_gateway.domain.workflow.known_analysis import is_current, is_lasting, of_request
from pml_gateway.domain.workflow.provenance import is_analysis_of
from pml_gateway.ports import Analyses

log = logging.getLogger(__name__)

MAX_CACHED: Final = 256

_TIMEOUT_S: Final = 5.0
_OF_NO_CONCERN: Final = {
    *("args", "called_as", "discovery_id", "event_id", "layers", "requested_at", "workflow_id"),
}
"""Fields of a request that its analysis does not depend on."""


class BusAnalyses(Analyses):
    """Asks the analyzer. A lasting analysis is cached for `max_age_s` seconds at most, and as long
    as its tools are listed as it saw them (`find`)."""

    def __init__(
        self,
        query_client: QueryClient,
        find: Callable[[str], ToolDefinition | None],
        *,
        max_age_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._query_client = query_client
        self._find = find
        self._cache = ReplyCache[bytes, ExecutionAnalyzed](
            max_age_s=max_age_s, max_entries=MAX_CACHED, clock=clock
        )

    @override
    async def of(
        self, requested: ExecutionRequested
    ) -> ExecutionAnalyzed | AnalysisRejected | None:
        asked = requested.model_copy(update={"args": {}, "layers": ()})
        key = _digest(asked)
        known = self._cache.get(key)
        if known is not None and is_current(known, self._find):
            return of_request(known, requested)
        moment = self._cache.begin_query()
        query = AnalyzeProgram(scope=requested.scope, requested=asked)
        try:
            reply = await self._query_client.request(ANALYZE, query, timeout=_TIMEOUT_S)
        except QueryFailed as failure:
            log.info("%s is analysed once it is stored: %s", requested.workflow_id, failure)
            return None
        if reply.analyzed is None:
            return reply.rejected
        if not is_analysis_of(requested, reply.analyzed):
            log.error("the analyzer answered %s with another analysis", requested.workflow_id)
            return None
        if is_lasting(reply.analyzed):
            self._cache.put(moment, key, reply.analyzed)
        return reply.analyzed


def _digest(asked: ExecutionRequested) -> bytes:
    """Return the SHA-256 of everything that an analysis depends on."""
    return hashlib.sha256(asked.model_dump_json(exclude=_OF_NO_CONCERN).encode()).digest()
