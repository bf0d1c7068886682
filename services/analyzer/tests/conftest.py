"""A bus: the in-memory one everywhere, the real server where it may run; a registry that answers on
it."""

from collections.abc import AsyncIterator, Sequence

import pytest

from libs.pml_common.tests.support.harness import BusHarness, MemoryBusHarness, NatsBusHarness
from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Bus
from pml_common.contracts.catalog import DESCRIBE_CAPABILITIES, LIST_TOOLS
from pml_common.contracts.registry import (
    CapabilityDescriptions,
    DescribeCapabilities,
    ListTools,
    Reference,
    ToolCatalog,
)
from pml_common.contracts.tool import ToolDefinition


class Registry:
    """Handles `list-tools` and `describe-capabilities`. `known` and `capabilities` are by
    `str(scope)`; None: it fails."""

    def __init__(self) -> None:
        self.known: dict[str, Sequence[ToolDefinition]] | None = {}
        self.asked = 0
        self.capabilities: dict[str, Sequence[Reference]] | None = {}
        self.described: list[tuple[str, ...]] = []

    async def serve(self, bus: Bus) -> None:
        """Handle queries on this bus."""
        await bus.serve(LIST_TOOLS, self._answer)
        await bus.serve(DESCRIBE_CAPABILITIES, self._describe)

    async def _describe(self, query: DescribeCapabilities) -> CapabilityDescriptions:
        self.described.append(query.references)
        if self.capabilities is None:
            raise QueryFailed("unavailable", "out of order")
        known = {one.reference: one for one in self.capabilities.get(str(query.scope), ())}
        nothing = (Reference(reference=reference) for reference in query.references)
        return CapabilityDescriptions(
            references=tuple(known.get(one.reference, one) for one in nothing)
        )

    async def _answer(self, query: ListTools) -> ToolCatalog:
        self.asked += 1
        if self.known is None:
            raise QueryFailed("unavailable", "out of order")
        return ToolCatalog(tools=tuple(self.known.get(str(query.scope), ())))


@pytest.fixture(params=["memory", pytest.param("nats", marks=pytest.mark.integration)])
def empty_world(request: pytest.FixtureRequest) -> BusHarness:
    """An empty server."""
    if request.param == "memory":
        return MemoryBusHarness()
    return NatsBusHarness(request.getfixturevalue("nats_url"))


@pytest.fixture
async def world(empty_world: BusHarness) -> AsyncIterator[BusHarness]:
    """An empty server to connect replicas to."""
    yield empty_world
    await empty_world.close()


@pytest.fixture
async def registry(world: BusHarness) -> Registry:
    """A registry on that server, without tools."""
    found = Registry()
    await found.serve(await world.connect("registry"))
    return found
