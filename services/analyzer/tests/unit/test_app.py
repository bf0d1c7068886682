"""The analyzer on a bus: the in-memory one, and the real server where it may run."""

from contextlib import AbstractAsyncContextManager
from uuid import UUID

from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.harness import eventually
from pml_analyzer.app import serve
from pml_analyzer.settings import AnalyzerSettings
from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Bus
from pml_common.contracts import ids
from pml_common.contracts.analyzer import (
    AnalysisRejected,
    AnalyzeProgram,
    ExecutionAnalyzed,
    ProgramAnalysis,
)
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import ANALYZE, EXECUTION_ANALYZED
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.registry import CapabilityChanged, CatalogChanged
from pml_common.health import Checks
from services.analyzer.tests.conftest import Registry
from services.analyzer.tests.support.library import READ_JSON, meaning
from services.analyzer.tests.support.programs import SOURCES_EXAMPLE, TOOLS
from services.analyzer.tests.unit.test_on_execution_requested import SCOPE, requested


async def _analyzer(world: BusHarness) -> AbstractAsyncContextManager[Checks]:
    settings = AnalyzerSettings(
        analyzer_catalog_max_age_s=3600, analyzer_spares=0, analyzer_type_check="off"
    )
    return serve(settings, await world.connect("analyzer"))


async def _answers(world: BusHarness, request: Message) -> list[Message]:
    """Publish a request and wait for the analyzer's event."""
    gateway = await world.connect("gateway")
    await gateway.publish(request)

    async def answered() -> list[Message]:
        past = [record.message for record in await gateway.history(SCOPE, request.entity)]
        return [m for m in past if isinstance(m, ExecutionAnalyzed | AnalysisRejected)]

    return await eventually(answered)


async def test_a_request_is_answered(world: BusHarness, registry: Registry) -> None:
    registry.known = {str(SCOPE): TOOLS}
    async with await _analyzer(world):
        (event,) = await _answers(world, requested(SOURCES_EXAMPLE))
    assert isinstance(event, ExecutionAnalyzed)
    assert event.decision.verdict == "ask"


async def _analysis(gateway: Bus, request: ExecutionRequested) -> ProgramAnalysis:
    """Query the analyzer until it answers: time on the in-memory bus passes at once."""

    async def asked() -> ProgramAnalysis | None:
        try:
            return await gateway.request(ANALYZE, AnalyzeProgram(scope=SCOPE, requested=request))
        except QueryFailed:
            return None

    return await eventually(asked)


async def test_a_program_is_analysed_before_its_request_is_stored(
    world: BusHarness, registry: Registry
) -> None:
    registry.known = {str(SCOPE): TOOLS}
    request = requested(SOURCES_EXAMPLE)
    async with await _analyzer(world):
        gateway = await world.connect("gateway")
        reply = await _analysis(gateway, request)
        [published] = await gateway.history(SCOPE, request.entity, of=EXECUTION_ANALYZED)
        refused = await _analysis(gateway, requested("const = 1;"))
    assert isinstance(published.message, ExecutionAnalyzed)
    assert reply.analyzed is not None
    assert reply.analyzed.event_id == ids.effect_id(request.event_id, "execution-analyzed")
    assert published.message.event_id != reply.analyzed.event_id
    same = {"event_id": reply.analyzed.event_id}
    assert published.message.model_copy(update=same) == reply.analyzed
    assert reply.rejected is None
    assert refused.analyzed is None
    assert refused.rejected is not None


async def test_a_rejection_is_answered_too(world: BusHarness, registry: Registry) -> None:
    async with await _analyzer(world):
        (event,) = await _answers(world, requested("const = 1;"))
    assert isinstance(event, AnalysisRejected)


async def test_a_change_of_the_catalogue_is_heard(world: BusHarness, registry: Registry) -> None:
    async with await _analyzer(world):
        await _answers(world, requested("return 1;"))
        registry.known = {str(SCOPE): TOOLS}
        bus = await world.connect("registry")
        await bus.publish(CatalogChanged(scope=SCOPE, event_id=UUID(int=7), server="fs"))
        (event,) = await _answers(world, requested("mcp.fs.read({});"))
    assert isinstance(event, ExecutionAnalyzed)


async def test_capabilities_are_asked_for_and_their_changes_are_heard(
    world: BusHarness, registry: Registry
) -> None:
    registry.known = {str(SCOPE): TOOLS}
    registry.capabilities = {str(SCOPE): [meaning("fs_read_json", READ_JSON)]}
    program = "return capabilities.fs_read_json({});"
    async with await _analyzer(world):
        (event,) = await _answers(world, requested(program))
        assert isinstance(event, ExecutionAnalyzed)
        registry.capabilities = {}
        bus = await world.connect("registry")
        changed = CapabilityChanged(
            scope=SCOPE,
            event_id=UUID(int=8),
            capability_id=READ_JSON.capability_id,
            name="fs:read",
            change="named",
        )
        await bus.publish(changed)
        (event,) = await _answers(world, requested(f"{program} // again"))
    assert isinstance(event, AnalysisRejected)


async def test_a_registry_that_comes_late_only_delays(
    world: BusHarness, registry: Registry
) -> None:
    registry.known = None
    async with await _analyzer(world):
        gateway = await world.connect("gateway")
        request = requested(SOURCES_EXAMPLE)
        await gateway.publish(request)
        await eventually(lambda: registry.asked)
        registry.known = {str(SCOPE): TOOLS}

        async def analyzed() -> object:
            return await gateway.history(SCOPE, request.entity, of=EXECUTION_ANALYZED)

        assert await eventually(analyzed)
