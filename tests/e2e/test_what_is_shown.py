"""The display of a program's calls before the decision, by the command."""

import asyncio
import os
import sys
from pathlib import Path
from typing import cast

import pytest
from mcp.client.client import Client

from libs.pml_local.tests.support.patience import PATIENCE_S
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


async def _pml(harness: StackHarness, *words: str, code: int = 0) -> str:
    """Run the command beside the stack; returns its output."""
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("pml"),
        *words,
        env={**os.environ, "PML_HOME": str(harness.stack.home), "NO_COLOR": "1", "COLUMNS": "200"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(PATIENCE_S):
        output, _ = await process.communicate()
    assert process.returncode == code, output.decode()
    return output.decode()


async def test_every_call_is_shown_with_the_source_of_its_arguments_and_then_runs(
    harness: StackHarness,
) -> None:
    request: Json = {"code": PROGRAM, "args": {"more": [971]}}
    asked = (await harness.http.post("/api/execute", json=request)).json()
    assert asked["status"] == "approval_required", asked
    workflow = str(asked["workflow_id"])
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
    assert approval["shown"] == {"digest": asked["approval"]["shown_digest"], "whole": True}
    assert approval["decided_by"] == f"approver:{user_name()}"
    assert [harness.steps()[n] for n in (970, 971, 972)] == [1, 1, 1]


async def test_a_direct_tools_approval_shows_its_arguments_everywhere(
    harness: StackHarness,
) -> None:
    async with Client(f"{harness.stack.url}/mcp") as client:
        asked = await client.call_tool("counting_step", {"n": 980})
    assert asked.is_error
    assert "counting:step(n = 980)" in str(asked.content)
    listed = await _pml(harness, "approvals", "list")
    assert "n = 980  the caller's" in listed
    assert "...args" not in listed
    assert asked.structured_content is not None
    workflow = str(asked.structured_content["workflowId"])
    approved = await _pml(harness, "approvals", "approve", workflow, "--wait")
    assert "n = 980  the caller's" in approved


async def test_a_call_at_which_a_run_parks_is_shown_to_who_waits_for_its_end(
    harness: StackHarness,
) -> None:
    code = "for (const n of args.ns) await mcp.call(args.tool, { n });"
    request: Json = {"code": code, "args": {"ns": [985], "tool": "counting:step"}}
    asked = (await harness.http.post("/api/execute", json=request)).json()
    workflow = str(asked["workflow_id"])
    parked = await _pml(harness, "approvals", "approve", workflow, "--wait", code=3)
    assert "the run is parked" in parked
    assert "counting:step" in parked
    assert "n = 985  what the run gives it" in parked
    traced = await _pml(harness, "trace", workflow)
    assert "n = 985" in traced
