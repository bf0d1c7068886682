"""Programs analysed in processes: with the same result as inline, and none longer than the
deadline."""

import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast
from uuid import UUID

import pytest

from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.harness import eventually
from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.check_results import ended_the_process
from pml_analysis.decision.capabilities import Library
from pml_analysis.text.limits import DEFAULT_LIMITS
from pml_analyzer.adapters.child_process import ChildCommand
from pml_analyzer.adapters.inline_engine import InlineEngine
from pml_analyzer.adapters.process_engine import INLINE, EngineFault, ProcessEngine, process_engine
from pml_analyzer.adapters.worker_pool import WorkerLimits, worker_pool
from pml_analyzer.app import serve
from pml_analyzer.ports import WorkersUnavailable
from pml_analyzer.settings import AnalyzerSettings
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.decision import DryRun
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from services.analyzer.tests.conftest import Registry
from services.analyzer.tests.support.library import KNOWN, READ_JSON, described
from services.analyzer.tests.support.programs import SOURCES_EXAMPLE, TOOLS, tool
from services.analyzer.tests.unit.test_on_execution_requested import SCOPE, requested

pytestmark = pytest.mark.integration

MONSTER = "'" * 260_000
RIVAL = Scope(org="rival", project="webapp")
PROGRAMS = (
    SOURCES_EXAMPLE,
    "return await capabilities.fs_read_json({ path: args.path });",
    "const = 1;",
    "return await mcp.fs.raed({});",
)


@asynccontextmanager
async def reading(deadline_s: float = 60, inline: int = 0) -> AsyncGenerator[ProcessEngine]:
    limits = WorkerLimits(deadline_s=deadline_s)
    async with process_engine(limits, inline=inline) as engine:
        yield engine


async def read(
    engine: ProcessEngine | InlineEngine,
    request: ExecutionRequested,
    tools: tuple[ToolDefinition, ...] = TOOLS,
) -> Analysis | Rejection:
    return await engine.analyze(request, tools, KNOWN, DEFAULT_LIMITS)


async def test_a_program_is_read_in_a_process_as_it_is_here() -> None:
    async with reading() as engine:
        for code in PROGRAMS:
            request = requested(code).model_copy(update={"dry_run": DryRun()})
            assert await read(engine, request) == await read(InlineEngine(), request)
        assert await engine.health() is None


async def test_a_capability_is_read_in_a_process_as_it_is_here() -> None:
    async with reading() as engine:
        for about in (READ_JSON, described("fs:broken", "const = 1;")):
            here = await InlineEngine().read_capability(SCOPE, about, DEFAULT_LIMITS)
            assert await engine.read_capability(SCOPE, about, DEFAULT_LIMITS) == here


async def test_each_program_is_read_with_the_tools_given_with_it() -> None:
    request = requested("return await mcp.fs.one({});")
    without = (tool("fs", "other"),)
    async with reading() as engine:
        for number in range(20):  # more than a process keeps
            one = (tool("fs:one", gives=None, read_only=number % 2 == 0),)
            for _ in range(2):
                outcome = await read(engine, request, one)
                assert isinstance(outcome, Analysis)
                assert outcome.decision == (await _decision(request, one))
            gc.collect()
        assert isinstance(await read(engine, request, without), Rejection)


async def _decision(request: ExecutionRequested, tools: tuple[ToolDefinition, ...]) -> object:
    outcome = await read(InlineEngine(), request, tools)
    assert isinstance(outcome, Analysis)
    return outcome.decision


async def test_a_monster_is_rejected_and_its_process_replaced() -> None:
    async with reading(deadline_s=0.1) as engine:
        for _ in range(2):
            outcome = await read(engine, requested(MONSTER))
            assert isinstance(outcome, Rejection)
            (told,) = outcome.diagnostics
            assert told.message.startswith("Reading the program took more than 0.1 s")
    async with reading(deadline_s=0.1) as engine:
        about = READ_JSON.model_copy(update={"code": MONSTER})
        capability = await engine.read_capability(SCOPE, about, DEFAULT_LIMITS)
        assert capability.fault == "reading its program took more than 0.1 s of processor time."


def no_pickle(_: object) -> bytes:
    return b"no pickle"


async def test_what_ends_the_process_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading() as engine:
        assert isinstance(await read(engine, requested("return 1;")), Analysis)
        monkeypatch.setattr("pickle.dumps", no_pickle)
        assert await read(engine, requested("return 1;")) == ended_the_process()
        capability = await engine.read_capability(SCOPE, READ_JSON, DEFAULT_LIMITS)
        assert capability.fault == "its program ended the process that read it, twice."


async def test_a_pass_that_fails_is_told_with_its_traceback() -> None:
    async with reading() as engine:
        with pytest.raises(EngineFault, match="AttributeError"):
            await engine.analyze(requested("return 1;"), TOOLS, cast(Library, None), DEFAULT_LIMITS)
        assert isinstance(await read(engine, requested("return 1;")), Analysis)


async def test_short_programs_are_read_where_they_are_asked_for() -> None:
    async with worker_pool("analysis", ChildCommand(("/nowhere/python",)), WorkerLimits()) as none:
        engine = ProcessEngine(none, INLINE)
        assert isinstance(await read(engine, requested("return 1;")), Analysis)
        assert (await engine.read_capability(SCOPE, READ_JSON, DEFAULT_LIMITS)).fault is None
        for long in (f"return 1;{' ' * INLINE}", f"return '{'é' * (INLINE // 2)}';"):
            with pytest.raises(WorkersUnavailable):
                await read(engine, requested(long))
        assert "/nowhere/python" in (await engine.health() or "")


async def test_one_scopes_monsters_hold_up_no_other_scope(
    world: BusHarness, registry: Registry
) -> None:
    registry.known = {str(SCOPE): TOOLS, str(RIVAL): TOOLS}
    settings = AnalyzerSettings(analyzer_deadline_s=0.2)
    gateway = await world.connect("gateway")
    monsters = [
        requested(MONSTER).model_copy(
            update={"workflow_id": UUID(int=n), "event_id": UUID(int=100 + n)}
        )
        for n in range(20)  # more than are handled at a time
    ]
    small = requested(SOURCES_EXAMPLE).model_copy(update={"scope": RIVAL})
    for request in (*monsters, small):
        await gateway.publish(request)
    async with serve(settings, await world.connect("analyzer")):

        async def answered() -> list[Message]:
            past = await gateway.history(RIVAL, small.entity)
            return [one.message for one in past if isinstance(one.message, ExecutionAnalyzed)]

        await eventually(answered)
        rejected = [
            one
            for request in monsters
            for one in await gateway.history(SCOPE, request.entity)
            if isinstance(one.message, AnalysisRejected)
        ]
        assert len(rejected) < len(monsters)
