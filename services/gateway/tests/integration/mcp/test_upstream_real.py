"""Third-party servers: the official filesystem server (npm) and git server (PyPI)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_gateway.adapters.mcp_client.server_pool import Limits
from pml_gateway.domain.servers.server_config import ServerConfig, StdioServer
from services.gateway.tests.integration.mcp.harness import connected

pytestmark = pytest.mark.integration

SCRIPTS = Path(sys.executable).parent
AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("alpha\n")
    for command in (("init", "-q"), ("add", "."), (*AUTHOR, "commit", "-qm", "First")):
        subprocess.run(("git", *command), cwd=folder, check=True)
    return folder


def _servers(folder: Path) -> dict[str, ServerConfig]:
    package = "npm:@modelcontextprotocol/server-filesystem"
    return {
        "fs": StdioServer(
            command=str(SCRIPTS / "deno"), args=("run", "-A", package, str(folder)), trust="hints"
        ),
        "git": StdioServer(
            command=str(SCRIPTS / "mcp-server-git"),
            args=("--repository", str(folder)),
            trust="hints",
        ),
    }


async def test_the_filesystem_server_lists_reads_creates_and_writes(folder: Path) -> None:
    async with connected(_servers(folder), Limits(), environment=os.environ) as pool:
        tools = {tool.name: tool for tool in pool.list_tools()["fs"]}
        listed = await pool.call("fs:list_directory", {"path": str(folder)}, PATIENCE_S)
        read = await pool.call("fs:read_text_file", {"path": f"{folder}/a.txt"}, PATIENCE_S)
        absent = await pool.call("fs:read_text_file", {"path": f"{folder}/b.txt"}, PATIENCE_S)
        made = await pool.call("fs:create_directory", {"path": f"{folder}/sub"}, PATIENCE_S)
        written = await pool.call(
            "fs:write_file", {"path": f"{folder}/sub/b.txt", "content": "beta"}, PATIENCE_S
        )
    assert listed.result == {"content": "[DIR] .git\n[FILE] a.txt"}
    assert read.result == {"content": "alpha\n"}
    assert absent.status == "tool_error"
    assert "ENOENT" in str(absent.message)
    assert made.status == written.status == "ok"
    assert (folder / "sub" / "b.txt").read_text() == "beta"
    assert tools["read_text_file"].annotations.read_only is True
    assert tools["write_file"].annotations.read_only is False
    assert tools["write_file"].annotations.destructive is True
    assert tools["create_directory"].annotations.idempotent is True


async def test_the_git_server_tells_log_and_status(folder: Path) -> None:
    async with connected(_servers(folder), Limits(), environment=os.environ) as pool:
        tools = {tool.name: tool for tool in pool.list_tools()["git"]}
        log = await pool.call("git:git_log", {"repo_path": str(folder)}, PATIENCE_S)
        status = await pool.call("git:git_status", {"repo_path": str(folder)}, PATIENCE_S)
        outside = await pool.call("git:git_status", {"repo_path": "/"}, PATIENCE_S)
    assert isinstance(log.result, str)
    assert "Message: First" in log.result
    assert isinstance(status.result, str)
    assert "nothing to commit" in status.result
    assert outside.status == "tool_error"
    assert "outside the allowed repository" in str(outside.message)
    assert tools["git_log"].annotations.read_only is True
    assert tools["git_commit"].annotations.read_only is False
