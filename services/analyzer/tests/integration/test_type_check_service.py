"""The analyzer with its type check on, configured by the environment."""

from pathlib import Path
from typing import Literal

import pytest
from deno import find_deno_bin

from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.harness import eventually
from pml_analyzer.app import serve
from pml_analyzer.settings import AnalyzerSettings
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Message
from services.analyzer.tests.conftest import Registry
from services.analyzer.tests.support.programs import TOOLS
from services.analyzer.tests.unit.test_on_execution_requested import SCOPE, requested

pytestmark = pytest.mark.integration

DENO = find_deno_bin()
CODE = "\nreturn await mcp.fs.read({ path: 1 });"


async def _answer(world: BusHarness) -> Message:
    gateway = await world.connect("gateway")
    request = requested(CODE)
    await gateway.publish(request)

    async def answered() -> list[Message]:
        past = [record.message for record in await gateway.history(SCOPE, request.entity)]
        return [m for m in past if isinstance(m, ExecutionAnalyzed | AnalysisRejected)]

    (event,) = await eventually(answered)
    return event


def _settings(mode: Literal["off", "warn", "reject"], deno: str = DENO) -> AnalyzerSettings:
    return AnalyzerSettings(
        analyzer_type_check=mode, analyzer_type_check_timeout_s=30, analyzer_deno=deno
    )


async def test_warn_tells_errors_with_the_analysis(world: BusHarness, registry: Registry) -> None:
    registry.known = {str(SCOPE): TOOLS}
    async with serve(_settings("warn"), await world.connect("analyzer")) as checks:
        event = await _answer(world)
        assert await checks["type checker"]() is None
    assert isinstance(event, ExecutionAnalyzed)
    (told,) = event.diagnostics
    assert (told.severity, told.line, told.column) == ("warning", 2, 28)
    assert told.message.startswith("Type 'number' is not assignable to type 'string'.")


async def test_reject_refuses_the_program(world: BusHarness, registry: Registry) -> None:
    registry.known = {str(SCOPE): TOOLS}
    async with serve(_settings("reject"), await world.connect("analyzer")):
        event = await _answer(world)
    assert isinstance(event, AnalysisRejected)
    assert [(told.severity, told.line) for told in event.diagnostics] == [("error", 2)]


async def test_a_checker_that_cannot_start_is_bad_health_and_a_warning(
    world: BusHarness, registry: Registry, tmp_path: Path
) -> None:
    registry.known = {str(SCOPE): TOOLS}
    only_compiles = tmp_path / "deno"
    only_compiles.write_text(f'#!/bin/sh\n[ "$1" = run ] && exec {DENO} "$@"\n', encoding="utf-8")
    only_compiles.chmod(0o700)
    settings = _settings("reject", deno=str(only_compiles))
    async with serve(settings, await world.connect("analyzer")) as checks:
        assert "the checker's process ended" in await eventually(checks["type checker"])
        event = await _answer(world)
    assert isinstance(event, ExecutionAnalyzed)
    assert [told.severity for told in event.diagnostics] == ["warning"]


async def test_off_starts_no_checker(world: BusHarness, registry: Registry) -> None:
    registry.known = {str(SCOPE): TOOLS}
    async with serve(_settings("off"), await world.connect("analyzer")) as checks:
        event = await _answer(world)
    assert set(checks) == {"analysis", "compiler"}
    assert isinstance(event, ExecutionAnalyzed)
    assert event.diagnostics == ()
