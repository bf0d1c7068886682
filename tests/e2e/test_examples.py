"""The examples as a reader tries them: the servers of examples/mcp.json and the first program."""

import asyncio
import json
import os
import sys
from pathlib import Path

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.composition import StackOptions
from pml_local.stack import Stack, embedded_stack
from pml_local.state import read_state

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = Path(sys.executable).parent
FETCHED_WITHIN = 2 * PATIENCE_S


async def _run(*words: str | Path, cwd: Path) -> str:
    """Run a command, which must succeed; returns its output."""
    process = await asyncio.create_subprocess_exec(
        *words, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE_S):
        output, complaint = await process.communicate()
    assert process.returncode == 0, complaint.decode()
    return output.decode()


async def test_the_first_program_needs_no_approval_and_is_learned(
    new_home: Path, tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text("# A folder to try\n")
    await _run("git", "init", "--quiet", cwd=tmp_path)
    options = StackOptions(
        home=new_home,
        mcp_servers=EXAMPLES / "mcp.json",
        env={"FOLDER": str(tmp_path), "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"},
    )
    async with (
        embedded_stack(options) as stack,
        httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http,
    ):

        async def known_servers() -> bool:
            found = await http.post("/api/discover", json={"intent": "files", "limit": 100})
            hits = found.json().get("hits", ())
            return {"fs:search_files", "git:git_log"} <= {str(hit["id"]) for hit in hits}

        await eventually(known_servers, within=FETCHED_WITHIN)
        pml = (SCRIPTS / "pml", "execute", "--url", stack.url, "--json")
        words = ("--name", "folder:describe", "--arg", f"folder={tmp_path}")
        first = json.loads(await _run(*pml, EXAMPLES / "first.ts", *words, cwd=tmp_path))
        assert first["status"] == "success"
        assert first["result"]["says"] == "# A folder to try"
        (tmp_path / "README.md").rename(tmp_path / "letter.md")
        again = ("--capability", "folder:describe", "--arg", f"folder={tmp_path}")
        second = json.loads(await _run(*pml, *again, cwd=tmp_path))
        assert second["result"] == {"readme": None, "holds": ["[DIR] .git", "[FILE] letter.md"]}
        assert second["capability_id"] == first["capability_id"]
        await _go_an_agents_way(stack, tmp_path)


async def _go_an_agents_way(stack: Stack, folder: Path) -> None:
    """Run the agent of README: approved in its client, called by name, found by intent."""
    state = read_state(stack.home)
    assert state is not None
    assert state.approver_key is not None
    decider = ("--url", stack.url, "--key-file", state.approver_key)
    await _run(SCRIPTS / "pml", "approvals", "elicitation", "on", *decider, cwd=folder)
    said = await _run(sys.executable, EXAMPLES / "agent.py", stack.url, "--yes", cwd=folder)
    assert said.count("the agent's program runs only if you approve") == 2
    assert (folder / "note.txt").read_text(encoding="utf-8") == "milk and bread"
    assert said.index("3. It is found") < said.index("notes:write", said.index("3. It is found"))
