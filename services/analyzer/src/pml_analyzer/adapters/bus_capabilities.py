"""Capabilities, queried over the bus and cached."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from typing_extensions import override

from pml_analyzer.ports import Capabilities, CapabilitiesUnavailable
from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import QueryClient
from pml_common.contracts.catalog import DESCRIBE_CAPABILITIES
from pml_common.contracts.registry import DescribeCapabilities, Reference
from pml_common.contracts.scope import Scope
from pml_common.reply_cache import ReplyCache

MAX_CACHED: Final = 1_000


class BusCapabilities(Capabilities):
    """Capabilities from the registry. A cached answer serves for `max_age_s` seconds at most."""

    def __init__(
        self, bus: QueryClient, *, max_age_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bus = bus
        self._cache = ReplyCache[tuple[Scope, str, str], Reference](
            max_age_s=max_age_s, max_entries=MAX_CACHED, clock=clock
        )

    @override
    async def describe(
        self, scope: Scope, principal: str, references: Sequence[str]
    ) -> Mapping[str, Reference]:
        # By principal, too: another's private capability is found by its owner alone.
        copies = {
            reference: self._cache.get((scope, principal, reference)) for reference in references
        }
        found = {reference: copy for reference, copy in copies.items() if copy is not None}
        unknown = tuple(reference for reference in copies if reference not in found)
        if unknown:
            found.update(await self._query(scope, principal, unknown))
        return found

    async def _query(
        self, scope: Scope, principal: str, references: tuple[str, ...]
    ) -> Mapping[str, Reference]:
        moment = self._cache.begin_query()
        query = DescribeCapabilities(scope=scope, principal=principal, references=references)
        try:
            reply = await self._bus.request(DESCRIBE_CAPABILITIES, query)
        except QueryFailed as failure:
            what = f"the capabilities that a program of {scope} calls"
            raise CapabilitiesUnavailable(f"{what}: {failure}") from failure
        for one in reply.references:
            if one.capability is not None:
                self._cache.put(moment, (scope, principal, one.reference), one)
        return {one.reference: one for one in reply.references}

    @override
    def invalidate(self, scope: Scope) -> None:
        self._cache.invalidate(lambda key: key[0] == scope)
