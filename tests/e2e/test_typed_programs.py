"""Types are checked by default, on the whole stack: with warnings, and capabilities are typed."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from mcp.client.client import Client

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e

WRONG = "const found = await mcp.counting.peek({ path: %d });\nthrow new Error('no');"
MEASURE = """const { path } = args;
await mcp.counting.peek({ path });
return { length: 7 - 1, of: `${path}` };"""


async def test_a_type_error_is_told_with_the_failure(harness: StackHarness) -> None:
    numbers = iter(range(1_000))

    async def told() -> Json | None:
        """Run another program each time: the first ones may be before the checker is there."""
        async with Client(f"{harness.stack.url}/mcp") as client:
            failed = await client.call_tool("pml_execute", {"code": WRONG % next(numbers)})
        assert failed.is_error
        assert failed.structured_content is not None
        warned = failed.structured_content.get("warnings")
        if warned:
            assert "warning at line 1, column 41: Type " in str(failed.content)
        return warned[0] if warned else None

    warning = await eventually(told)
    assert (warning["line"], warning["column"]) == (1, 41)


async def test_a_capability_is_typed_by_its_parameters_and_its_result(
    harness: StackHarness,
) -> None:
    saved = await harness.execute(MEASURE, name="typed:measure", args={"path": "/x"})
    assert saved["status"] == "success", saved

    async def typed() -> bool:
        process = await asyncio.create_subprocess_exec(
            *(Path(sys.executable).with_name("pml"), "types", "--url", harness.stack.url),
            env={**os.environ, "NO_COLOR": "1"},
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE_S):
            text = (await process.communicate())[0].decode()
        wanted = (
            "typed_measure: (args: { path: string }) => Promise<{ length: number; of: string }>"
        )
        return wanted in text

    await eventually(typed)
    numbers = iter(range(1_000))

    async def told() -> str | None:
        call = f"const m = await capabilities.typed_measure({{ path: '/{next(numbers)}' }});"
        answer = await harness.execute(f"{call}\nreturn m.width;")
        assert answer["status"] == "success", answer
        warned = answer.get("warnings")
        return str(warned) if warned else None

    assert "Property 'width' does not exist" in await eventually(told)
