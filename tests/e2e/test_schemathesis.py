"""Every operation of the described REST interface, with generated requests and all checks."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.e2e.harness import StackHarness

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

SETTINGS = Path(__file__).with_name("schemathesis.toml")
_METHODS = {"get", "post", "patch", "put", "delete"}
_TESTED = re.compile(r"Tested: (\d+)")


async def test_every_operation_does_what_its_description_says(
    harness: StackHarness, tmp_path: Path
) -> None:
    described = (await harness.http.get("/openapi.json")).json()["paths"]
    operations = sum(len(_METHODS & set(path)) for path in described.values())
    options = ["--checks", "all", "--max-examples", "4", "--no-shrink"]
    header = f"Authorization: {harness.approver['Authorization']}"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-m", "schemathesis.cli", "--config-file", SETTINGS),
        *("run", f"{harness.stack.url}/openapi.json", *options),
        *("--phases", "examples,coverage,fuzzing", "--generation-deterministic"),
        *("--request-timeout", "30", "--continue-on-failure", "--header", header),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path,
    )
    try:
        async with asyncio.timeout(4 * PATIENCE_S):
            said = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, said[-20_000:]
    tested = _TESTED.search(said)
    assert tested is not None
    assert int(tested[1]) == operations
