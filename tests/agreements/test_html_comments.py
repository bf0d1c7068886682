"""The analyzer refuses every HTML-like comment by which a sandbox would skip other text than it."""

import asyncio
import sys
from collections.abc import Iterable

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.domain.protocol import Returned
from pml_executor.ports import NeedsWorker
from services.analyzer.tests.unit.test_html_comments import HIDING, HONEST
from tests.agreements.processes import patient_command, program, renewed

pytestmark = pytest.mark.integration


async def _ends(programs: Iterable[str]) -> list[object]:
    """Run unanalysed programs, each in a fresh Worker; return their results."""
    command, found = await patient_command(), list[object]()
    sandbox = await DenoSandbox.start(command)
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            for code in programs:
                await sandbox.run(program(code))
                end = await sandbox.receive()
                found.append(end.value if isinstance(end, Returned) else end)
                sandbox = await renewed(sandbox, command, realm=False)
    finally:
        await sandbox.close()
    return found


async def test_what_is_refused_is_a_comment_in_workers() -> None:
    ends = await _ends([code for code, _ in HIDING.values()])
    assert dict(zip(HIDING, ends, strict=True)) == dict.fromkeys(HIDING, "hidden")


async def test_what_is_taken_is_none() -> None:
    ends = await _ends([code for code, _ in HONEST.values()])
    assert dict(zip(HONEST, ends, strict=True)) == {name: end for name, (_, end) in HONEST.items()}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process has realms")
async def test_no_realm_runs_what_is_refused() -> None:
    command = await patient_command()
    sandbox = await DenoSandbox.start(command)
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            await sandbox.run(program("return 0;"))  # a process's first run has a Worker
            assert isinstance(await sandbox.receive(), Returned)
            for code, _ in HIDING.values():
                sandbox = await renewed(sandbox, command, realm=True)
                await sandbox.run(program(code))
                assert sandbox.in_realm
                with pytest.raises(NeedsWorker, match="a comment of HTML"):
                    await sandbox.receive()
    finally:
        await sandbox.close()
