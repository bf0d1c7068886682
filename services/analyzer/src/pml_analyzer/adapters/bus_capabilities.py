"""Capabilities, asked for over the bus and kept for a while."""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pml_analyzer.ports import CapabilitiesUnavailable
from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Asker
from pml_common.contracts.catalog import DESCRIBE_CAPABILITIES
from pml_common.contracts.registry import DescribeCapabilities, Reference
from pml_common.contracts.scope import Scope

MOST_KEPT: Final = 1_000


@dataclass(frozen=True)
class _Copy:
    reference: Reference
    asked_at: float


class BusCapabilities:
    """See Capabilities. A copy serves for `max_age_s` seconds at most."""

    def __init__(
        self, bus: Asker, *, max_age_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bus = bus
        self._max_age_s = max_age_s
        self._clock = clock
        self._copies: OrderedDict[tuple[Scope, str], _Copy] = OrderedDict()
        self._drops = 0

    async def describe(self, scope: Scope, references: Sequence[str]) -> Mapping[str, Reference]:
        """See Capabilities."""
        oldest = self._clock() - self._max_age_s
        found: dict[str, Reference] = {}
        for reference in references:
            copy = self._copies.get((scope, reference))
            if copy is not None and copy.asked_at >= oldest:
                self._copies.move_to_end((scope, reference))
                found[reference] = copy.reference
        unknown = tuple(reference for reference in references if reference not in found)
        if unknown:
            found.update(await self._ask(scope, unknown))
        return found

    async def _ask(self, scope: Scope, references: tuple[str, ...]) -> Mapping[str, Reference]:
        asked_at, drops = self._clock(), self._drops
        query = DescribeCapabilities(scope=scope, references=references)
        try:
            reply = await self._bus.ask(DESCRIBE_CAPABILITIES, query)
        except QueryFailed as failure:
            what = f"the capabilities that a program of {scope} calls"
            raise CapabilitiesUnavailable(f"{what}: {failure}") from failure
        if drops == self._drops:  # else the answer may be older than the change
            self._keep(scope, reply.references, asked_at)
        return {one.reference: one for one in reply.references}

    def _keep(self, scope: Scope, references: Sequence[Reference], asked_at: float) -> None:
        for one in references:
            if one.capability is not None:
                self._copies[scope, one.reference] = _Copy(one, asked_at)
                self._copies.move_to_end((scope, one.reference))
        while len(self._copies) > MOST_KEPT:
            self._copies.popitem(last=False)

    def drop(self, scope: Scope) -> None:
        """See Capabilities."""
        self._drops += 1
        for key in [key for key in self._copies if key[0] == scope]:
            del self._copies[key]
