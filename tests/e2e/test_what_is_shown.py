"""The display of a program's calls before the decision, by the command."""

import asyncio
import os
import sys
from pathlib import Path
from typing import cast

import pytest

from pml_local.approver import user_name
from tests.e2e.deciding import decide
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e

PROGRAM = r"""
const found = await mcp.counting.peek({ path: "/a/../\u202ex" });
for (const n of args.more) await mcp.counting.step({ n });
await mcp.counting.step({ n: 970 });
await mcp.counting.step({ n: 970 + (found.exists ? 1 : 2) });
return found;
"""


async def _pml(harness: StackHarness, *words: str) -> str:
    """Run the command beside the stack; returns its output."""
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("pml"),
        *words,
        env={**os.environ, "PML_HOME": str(harness.stack.home), "NO_COLOR": "1", "COLUMNS": "200"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(60):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_every_call_is_shown_with_the_source_of_its_arguments_and_then_runs(
    harness: StackHarness,
) -> None:
    request: Json = {"code": PROGRAM, "args": {"more": [971]}}
    asked = (await harness.http.post("/api/execute", json=request)).json()
    assert asked["status"] == "approval_required", asked
    workflow = str(asked["workflowId"])
    shown = await _pml(harness, "approvals", "show", workflow)
    assert "? " in shown
    assert "counting:step" in shown
    assert shown.count("counting:step") >= 3, "each of its calls"
    assert "n = 970  literal" in shown
    assert "any number of times" in shown
    assert "computed when it runs" in shown
    assert 'path = "/a/../\\u202ex"  literal' in shown
    assert "leads upwards" in shown
    assert "changes the direction of text" in shown
    stale = {"digest": "0" * 64, "whole": True}
    refused = await decide(harness, workflow, decision="approve", shown=stale)
    assert refused.status_code == 409, refused.text
    approved = await _pml(harness, "approvals", "approve", workflow, "--wait")
    assert "success" in approved
    approval = cast(Json, (await harness.workflow(workflow))["approval"])
    assert approval["shown"] == {"digest": asked["approval"]["shownDigest"], "whole": True}
    assert approval["decided_by"] == f"approver:{user_name()}"
    assert [harness.steps()[n] for n in (970, 971, 972)] == [1, 1, 1]
