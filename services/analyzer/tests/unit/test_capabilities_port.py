"""The port of capabilities and its cache: one suite for the real adapter and its fake."""

from collections.abc import Sequence

import pytest

from libs.pml_common.tests.support.harness import BusHarness, MemoryBusHarness
from pml_analyzer.adapters.bus_capabilities import MAX_CACHED, BusCapabilities
from pml_analyzer.entrypoints.bus.on_registry_changes import on_capability_changed
from pml_analyzer.ports import Capabilities, CapabilitiesUnavailable
from pml_common.bus.port import Bus
from pml_common.contracts.catalog import DESCRIBE_CAPABILITIES
from pml_common.contracts.registry import (
    CapabilityChanged,
    CapabilityDescriptions,
    DescribeCapabilities,
    Reference,
)
from pml_common.contracts.scope import Scope
from services.analyzer.tests.conftest import Registry
from services.analyzer.tests.support.library import PURE, READ_JSON, meaning
from services.analyzer.tests.support.memory import MemoryCapabilities
from services.analyzer.tests.unit.test_catalog import Clock

OURS, THEIRS = Scope(org="acme", project="a"), Scope(org="acme", project="b")
READ, DOUBLE = meaning("fs_read_json", READ_JSON), meaning("math_double", PURE)
UNKNOWN = Reference(reference="fs_raed", near=("fs_read",))


class Source:
    """The registry's contents, for either adapter."""

    def __init__(self, behind: MemoryCapabilities | Registry) -> None:
        self._behind = behind

    def knows(self, *references: Reference, scope: Scope = OURS) -> None:
        """Set the contents for this scope; others have none."""
        self._set({str(scope): references})

    def fails(self) -> None:
        """Make the registry fail."""
        self._set(None)

    def _set(self, known: dict[str, Sequence[Reference]] | None) -> None:
        if isinstance(self._behind, MemoryCapabilities):
            self._behind.known = known
        else:
            self._behind.capabilities = known


Pair = tuple[Capabilities, Source]


@pytest.fixture(params=["twin", "bus"])
async def pair(request: pytest.FixtureRequest, world: BusHarness, registry: Registry) -> Pair:
    """The port, and its source."""
    if request.param == "twin":
        twin = MemoryCapabilities()
        return twin, Source(twin)
    return BusCapabilities(await world.connect("analyzer"), max_age_s=60), Source(registry)


async def test_each_reference_is_told_in_its_own_scope(pair: Pair) -> None:
    capabilities, source = pair
    source.knows(READ, DOUBLE, UNKNOWN)
    asked = ["fs_read_json", "fs_raed", "nothing"]
    assert await capabilities.describe(OURS, "agent-7", asked) == {
        "fs_read_json": READ,
        "fs_raed": UNKNOWN,
        "nothing": Reference(reference="nothing"),
    }
    theirs = await capabilities.describe(THEIRS, "agent-7", ["fs_read_json"])
    assert theirs["fs_read_json"].capability is None


async def test_what_is_known_serves_until_it_is_dropped(pair: Pair) -> None:
    capabilities, source = pair
    source.knows(READ)
    await capabilities.describe(OURS, "agent-7", ["fs_read_json"])
    renamed = meaning("fs_read_json", PURE)
    source.knows(renamed, DOUBLE)
    both = await capabilities.describe(OURS, "agent-7", ["fs_read_json", "math_double"])
    assert both == {"fs_read_json": READ, "math_double": DOUBLE}
    capabilities.invalidate(THEIRS)
    assert (await capabilities.describe(OURS, "agent-7", ["fs_read_json"]))["fs_read_json"] == READ
    capabilities.invalidate(OURS)
    assert (await capabilities.describe(OURS, "agent-7", ["fs_read_json"]))[
        "fs_read_json"
    ] == renamed


async def test_what_is_unknown_is_asked_for_every_time(pair: Pair) -> None:
    capabilities, source = pair
    assert (await capabilities.describe(OURS, "agent-7", ["fs_read_json"]))[
        "fs_read_json"
    ].capability is None
    source.knows(READ)
    assert (await capabilities.describe(OURS, "agent-7", ["fs_read_json"]))["fs_read_json"] == READ


async def test_a_registry_that_does_not_answer_is_waited_for(pair: Pair) -> None:
    capabilities, source = pair
    source.fails()
    with pytest.raises(CapabilitiesUnavailable, match=r"acme\.a"):
        await capabilities.describe(OURS, "agent-7", ["fs_read_json"])
    source.knows(READ)
    assert (await capabilities.describe(OURS, "agent-7", ["fs_read_json"]))["fs_read_json"] == READ


@pytest.mark.parametrize(
    ("change", "health", "dropped"),
    [
        ("created", None, True),
        ("renamed", None, True),
        ("yanked", None, True),
        ("listed", None, False),
        ("learned", None, False),
        ("learned", "failing", True),
    ],
)
async def test_only_a_change_of_names_or_health_makes_what_is_known_be_asked_again(
    pair: Pair, change: str, health: str | None, dropped: bool
) -> None:
    capabilities, source = pair
    source.knows(READ)
    await capabilities.describe(OURS, "agent-7", ["fs_read_json"])
    source.knows(DOUBLE)
    event = CapabilityChanged.model_validate(
        {
            "scope": OURS,
            "event_id": READ_JSON.capability_id,
            "capability_id": READ_JSON.capability_id,
            "name": "fs:read_json",
            "change": change,
            "health": health,
        }
    )
    for _ in range(2):
        await on_capability_changed(event, capabilities)
    found = (await capabilities.describe(OURS, "agent-7", ["fs_read_json"]))["fs_read_json"]
    assert (found.capability is None) == dropped


@pytest.fixture
async def bus() -> Bus:
    return await MemoryBusHarness().connect("analyzer")


async def test_only_what_is_missing_is_asked_for(bus: Bus) -> None:
    registry = Registry()
    await registry.serve(bus)
    registry.capabilities = {str(OURS): [READ, DOUBLE]}
    capabilities = BusCapabilities(bus, max_age_s=30)
    await capabilities.describe(OURS, "agent-7", [])
    await capabilities.describe(OURS, "agent-7", ["fs_read_json"])
    await capabilities.describe(OURS, "agent-7", ["fs_read_json", "math_double"])
    assert registry.described == [("fs_read_json",), ("math_double",)]


async def test_a_copy_grows_too_old(bus: Bus) -> None:
    registry, clock = Registry(), Clock()
    await registry.serve(bus)
    registry.capabilities = {str(OURS): [READ]}
    capabilities = BusCapabilities(bus, max_age_s=30, clock=clock)
    for clock.now in (0.0, 30.0, 31.0, 61.0):
        await capabilities.describe(OURS, "agent-7", ["fs_read_json"])
    assert len(registry.described) == 2


async def test_an_answer_that_a_change_overtook_is_not_kept(bus: Bus) -> None:
    capabilities = BusCapabilities(bus, max_age_s=30)
    asked = 0

    async def answer(_: DescribeCapabilities) -> CapabilityDescriptions:
        nonlocal asked
        asked += 1
        capabilities.invalidate(OURS)  # the change is heard while the answer is on its way
        return CapabilityDescriptions(references=(READ,))

    await bus.serve(DESCRIBE_CAPABILITIES, answer)
    for _ in range(2):
        assert await capabilities.describe(OURS, "agent-7", ["fs_read_json"]) == {
            "fs_read_json": READ
        }
    assert asked == 2


async def test_only_so_many_are_kept(bus: Bus) -> None:
    registry = Registry()
    await registry.serve(bus)
    names = [f"x_c{number}" for number in range(MAX_CACHED + 1)]
    registry.capabilities = {str(OURS): [meaning(name, PURE) for name in names]}
    capabilities = BusCapabilities(bus, max_age_s=30)
    for name in names:
        await capabilities.describe(OURS, "agent-7", [name])
    await capabilities.describe(OURS, "agent-7", [names[-1]])
    assert len(registry.described) == MAX_CACHED + 1
    await capabilities.describe(OURS, "agent-7", [names[0]])
    assert len(registry.described) == MAX_CACHED + 2
