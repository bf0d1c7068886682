"""The analyzer refuses every HTML-like comment by which a sandbox would skip other text than it."""

import asyncio
import sys
from collections.abc import Iterable

import pytest

from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.app import sandbox_command
from pml_executor.domain.protocol import Program, Returned
from pml_executor.settings import ExecutorSettings
from services.analyzer.tests.unit.test_html_comments import HIDING, HONEST

pytestmark = pytest.mark.integration

REALMS = pytest.param(
    True,
    marks=pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process has realms"),
    id="realm",
)


async def _ends(programs: Iterable[str], *, realm: bool) -> list[object]:
    """Run unanalysed programs, each in a fresh Worker or realm; return their results."""
    settings = ExecutorSettings(executor_pool_mode="per_scope_realm")
    sandbox = await DenoSandbox.start(await sandbox_command(settings))
    found: list[object] = []
    try:
        async with asyncio.timeout(120):
            for number, code in enumerate(("return 0;", *programs)):
                await sandbox.run(Program(code=code, args={}, seed="0" * 32, now=0, past=0))
                end = await sandbox.receive()
                assert sandbox.in_realm == (realm and number > 0)  # the first is in a Worker
                found.append(end.value if isinstance(end, Returned) else end)
                sandbox.finish()
                assert await sandbox.renew(realm=realm)
    finally:
        await sandbox.close()
    return found[1:]


@pytest.mark.parametrize("realm", [pytest.param(False, id="worker"), REALMS])
async def test_what_is_refused_is_a_comment_in_sandboxes(realm: bool) -> None:
    ends = await _ends([code for code, _ in HIDING.values()], realm=realm)
    assert dict(zip(HIDING, ends, strict=True)) == dict.fromkeys(HIDING, "hidden")


@pytest.mark.parametrize("realm", [pytest.param(False, id="worker"), REALMS])
async def test_what_is_taken_is_none(realm: bool) -> None:
    ends = await _ends([code for code, _ in HONEST.values()], realm=realm)
    assert dict(zip(HONEST, ends, strict=True)) == {name: end for name, (_, end) in HONEST.items()}
