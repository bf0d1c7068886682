"""The analyzer's list of globals and the sandbox's globals are equal."""

import asyncio
import sys
from typing import cast

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_analysis.names.globals import FORBIDDEN, GLOBALS
from pml_analysis.names.origins import BOUND_ROOTS
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.domain.protocol import Returned
from pml_executor.domain.realms import NOT_IN_REALMS
from tests.agreements.processes import patient_command, program, renewed

pytestmark = pytest.mark.integration

NAMES = """return { global: Object.getOwnPropertyNames(globalThis),
  bound: [typeof mcp, typeof capabilities, typeof args, typeof context] };"""
OF_FUNCTIONS = {"arguments"}
"""Known names that are not global."""


async def _seen_by_a_program(*, realm: bool = False) -> dict[str, list[str]]:
    """The names that an unanalysed program sees, in a Worker or a realm."""
    command = await patient_command()
    sandbox = await DenoSandbox.start(command)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await sandbox.run(program(NAMES))
            returned = await sandbox.receive()
            if realm:
                sandbox = await renewed(sandbox, command, realm=True)
                await sandbox.run(program(NAMES))
                returned = await sandbox.receive()
    finally:
        await sandbox.close()
    assert isinstance(returned, Returned), returned
    return cast(dict[str, list[str]], returned.value)


async def test_every_global_of_the_sandbox_is_known_and_every_known_one_is_there() -> None:
    seen = await _seen_by_a_program()
    assert set(seen["global"]) - FORBIDDEN.keys() == GLOBALS - OF_FUNCTIONS


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process has realms")
async def test_a_realm_has_the_same_globals_but_those_that_keep_a_program_out_of_it() -> None:
    worker, realm = await _seen_by_a_program(), await _seen_by_a_program(realm=True)
    assert set(worker["global"]) - set(realm["global"]) == NOT_IN_REALMS
    assert set(realm["global"]) <= set(worker["global"])
    assert realm["bound"] == worker["bound"]


async def test_no_forbidden_name_is_in_the_list_of_allowed_ones() -> None:
    assert not FORBIDDEN.keys() & GLOBALS
    assert not {*BOUND_ROOTS, "mcp", "capabilities"} & {*FORBIDDEN, *GLOBALS}
    assert "undefined" not in (await _seen_by_a_program())["bound"]
