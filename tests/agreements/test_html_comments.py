"""The analyzer refuses every HTML-like comment by which a sandbox would skip other text than it."""

import asyncio
import sys
from collections.abc import Iterable
from dataclasses import replace

import pytest

from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.app import sandbox_command
from pml_executor.domain.protocol import Program, Returned
from pml_executor.ports import NeedsWorker
from pml_executor.settings import ExecutorSettings
from services.analyzer.tests.unit.test_html_comments import HIDING, HONEST

pytestmark = pytest.mark.integration
SETTINGS = ExecutorSettings(executor_pool_mode="per_scope_realm")


async def _patient_command() -> DenoCommand:
    """A busy machine may be slow to renew a process."""
    return replace(await sandbox_command(SETTINGS), stop_timeout_s=30.0)


async def _ends(programs: Iterable[str]) -> list[object]:
    """Run unanalysed programs, each in a fresh Worker; return their results."""
    sandbox = await DenoSandbox.start(await _patient_command())
    found: list[object] = []
    try:
        async with asyncio.timeout(120):
            for code in programs:
                await sandbox.run(_program(code))
                end = await sandbox.receive()
                found.append(end.value if isinstance(end, Returned) else end)
                sandbox.finish()
                assert await sandbox.renew(realm=False)
    finally:
        await sandbox.close()
    return found


def _program(code: str) -> Program:
    return Program(code=code, args={}, seed="0" * 32, now=0, past=0)


async def test_what_is_refused_is_a_comment_in_workers() -> None:
    ends = await _ends([code for code, _ in HIDING.values()])
    assert dict(zip(HIDING, ends, strict=True)) == dict.fromkeys(HIDING, "hidden")


async def test_what_is_taken_is_none() -> None:
    ends = await _ends([code for code, _ in HONEST.values()])
    assert dict(zip(HONEST, ends, strict=True)) == {name: end for name, (_, end) in HONEST.items()}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process has realms")
async def test_no_realm_runs_what_is_refused() -> None:
    sandbox = await DenoSandbox.start(await _patient_command())
    try:
        async with asyncio.timeout(120):
            await sandbox.run(_program("return 0;"))  # a process's first run has a Worker
            assert isinstance(await sandbox.receive(), Returned)
            for code, _ in HIDING.values():
                sandbox.finish()
                assert await sandbox.renew(realm=True)
                await sandbox.run(_program(code))
                assert sandbox.in_realm
                with pytest.raises(NeedsWorker, match="a comment of HTML"):
                    await sandbox.receive()
    finally:
        await sandbox.close()
