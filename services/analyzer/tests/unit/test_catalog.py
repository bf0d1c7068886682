"""The port of the tool catalog and its cache: one suite for the real adapter and its fake."""

import pytest

from libs.pml_common.tests.support.harness import BusHarness, MemoryBusHarness
from pml_analysis.decision.toolbox import Tools
from pml_analyzer.adapters.bus_catalog import BusCatalog
from pml_analyzer.ports import Catalog, CatalogUnavailable
from pml_common.bus.port import Bus
from pml_common.contracts.catalog import LIST_TOOLS
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import QuarantinedTool
from services.analyzer.tests.conftest import Registry
from services.analyzer.tests.support.memory import MemoryCatalog
from services.analyzer.tests.support.programs import tool

OURS, THEIRS = Scope(org="acme", project="a"), Scope(org="acme", project="b")
READ, WRITE = tool("fs:read"), tool("fs:write")


class Clock:
    """A manual clock, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["twin", "bus"])
async def catalog(
    request: pytest.FixtureRequest, world: BusHarness, registry: Registry
) -> tuple[Catalog, MemoryCatalog | Registry]:
    """A catalog, and its source."""
    if request.param == "twin":
        twin = MemoryCatalog()
        return twin, twin
    return BusCatalog(await world.connect("analyzer"), max_age_s=60), registry


Pair = tuple[Catalog, MemoryCatalog | Registry]


async def test_a_scope_sees_its_own_tools(catalog: Pair) -> None:
    tools, source = catalog
    source.known = {str(OURS): [READ, WRITE]}
    assert list(await tools.tools(OURS)) == [READ, WRITE]
    assert list(await tools.tools(THEIRS)) == []


async def test_a_copy_serves_until_it_is_dropped(catalog: Pair) -> None:
    tools, source = catalog
    source.known = {str(OURS): [READ]}
    await tools.tools(OURS)
    source.known = {str(OURS): [READ, WRITE]}
    assert list(await tools.tools(OURS)) == [READ]
    tools.invalidate(THEIRS)
    assert list(await tools.tools(OURS)) == [READ]
    tools.invalidate(OURS)
    assert list(await tools.tools(OURS)) == [READ, WRITE]


async def test_reading_again_sees_what_is_there_now(catalog: Pair) -> None:
    tools, source = catalog
    source.known = {str(OURS): [READ]}
    await tools.tools(OURS)
    source.known = {str(OURS): [WRITE]}
    assert list(await tools.refresh(OURS)) == [WRITE]
    assert list(await tools.tools(OURS)) == [WRITE]


async def test_a_registry_that_does_not_answer_is_waited_for(catalog: Pair) -> None:
    tools, source = catalog
    source.known = None
    with pytest.raises(CatalogUnavailable, match=r"acme\.a"):
        await tools.tools(OURS)
    source.known = {str(OURS): [READ]}
    assert list(await tools.tools(OURS)) == [READ]


@pytest.fixture
async def bus() -> Bus:
    return await MemoryBusHarness().connect("analyzer")


async def test_a_copy_grows_too_old(bus: Bus) -> None:
    registry, clock = Registry(), Clock()
    await registry.serve(bus)
    tools = BusCatalog(bus, max_age_s=30, clock=clock)
    for clock.now in (0.0, 30.0, 31.0, 61.0):
        await tools.tools(OURS)
    assert registry.asked == 2


async def test_an_answer_that_a_change_overtook_is_not_kept(bus: Bus) -> None:
    tools = BusCatalog(bus, max_age_s=30)
    asked = 0

    async def answer(_: ListTools) -> ToolCatalog:
        nonlocal asked
        asked += 1
        tools.invalidate(OURS)  # the change is heard while the answer is on its way
        return ToolCatalog(tools=(READ,))

    await bus.serve(LIST_TOOLS, answer)
    for _ in range(2):
        assert list(await tools.tools(OURS)) == [READ]
    assert asked == 2


async def test_tools_in_quarantine_are_known_as_such(bus: Bus) -> None:
    held = QuarantinedTool(server="fs", name="write", changed=(), definition_hash="ab" * 32)

    async def answer(_: ListTools) -> ToolCatalog:
        return ToolCatalog(tools=(READ,), quarantined=(held,))

    await bus.serve(LIST_TOOLS, answer)
    known = await BusCatalog(bus, max_age_s=30).tools(OURS)
    assert isinstance(known, Tools)
    assert (list(known), list(known.quarantined.values())) == ([READ], [held])


async def test_only_so_many_scopes_are_kept(bus: Bus) -> None:
    registry = Registry()
    await registry.serve(bus)
    tools = BusCatalog(bus, max_age_s=30)
    scopes = [Scope(org="acme", project=f"p{number}") for number in range(257)]
    for scope in scopes:
        await tools.tools(scope)
    await tools.tools(scopes[-1])
    assert registry.asked == 257
    await tools.tools(scopes[0])
    assert registry.asked == 258
