"""The analyzer's list of globals and the sandbox's globals are equal."""

import asyncio
from typing import cast

import pytest

from pml_analysis.names.globals import FORBIDDEN, GLOBALS
from pml_analysis.names.origins import BOUND_ROOTS
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.app import sandbox_command
from pml_executor.domain.protocol import Program, Returned
from pml_executor.settings import ExecutorSettings

pytestmark = pytest.mark.integration

NAMES = """return { global: Object.getOwnPropertyNames(globalThis),
  bound: [typeof mcp, typeof capabilities, typeof args, typeof context] };"""
OF_FUNCTIONS = {"arguments"}
"""Known names that are not global."""


async def _seen_by_a_program() -> dict[str, list[str]]:
    """The names that an unanalysed program sees."""
    sandbox = await DenoSandbox.start(await sandbox_command(ExecutorSettings()))
    try:
        async with asyncio.timeout(60):
            await sandbox.run(Program(code=NAMES, args={}, seed="0" * 32, now=0, past=0))
            returned = await sandbox.receive()
    finally:
        await sandbox.close()
    assert isinstance(returned, Returned), returned
    return cast(dict[str, list[str]], returned.value)


async def test_every_global_of_the_sandbox_is_known_and_every_known_one_is_there() -> None:
    seen = await _seen_by_a_program()
    assert set(seen["global"]) - FORBIDDEN.keys() == GLOBALS - OF_FUNCTIONS


async def test_no_forbidden_name_is_in_the_list_of_allowed_ones() -> None:
    assert not FORBIDDEN.keys() & GLOBALS
    assert not {*BOUND_ROOTS, "mcp", "capabilities"} & {*FORBIDDEN, *GLOBALS}
    assert "undefined" not in (await _seen_by_a_program())["bound"]
