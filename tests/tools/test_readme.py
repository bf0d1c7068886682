"""The snippets of README.md that clients read, in the forms that they document."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONNECT = README[README.index("## Connect an MCP client") : README.index("## Add MCP servers")]
URL = "http://127.0.0.1:8080/mcp"


def _snippets(text: str) -> list[Any]:
    return [json.loads(each) for each in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]


def _after(heading: str) -> Any:
    return _snippets(CONNECT[CONNECT.index(heading) :])[0]


def test_every_json_snippet_is_json() -> None:
    assert len(_snippets(README)) >= 4


def test_vs_code_reads_servers_with_a_type() -> None:
    assert _after("**VS Code**") == {"servers": {"pml": {"type": "http", "url": URL}}}


def test_cursor_reads_mcp_servers_with_a_url() -> None:
    assert _after("**Cursor**") == {"mcpServers": {"pml": {"url": URL}}}


def test_claude_desktop_starts_the_command_with_absolute_paths() -> None:
    entry = _after("**Claude Desktop**")["mcpServers"]["pml"]
    assert entry.keys() == {"command", "args"}
    command, home = Path(entry["command"]), Path(entry["args"][2])
    assert command.is_absolute()
    assert home.is_absolute()
    assert [command.name, *entry["args"][:2], *entry["args"][3:]] == [
        "pml",
        "mcp",
        "--home",
        "--start",
    ]


def test_claude_code_gets_its_options_before_the_name() -> None:
    assert f"claude mcp add --transport http pml {URL}" in CONNECT


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)[^)]*\)", README))))
def test_what_readme_links_to_is_there(link: str) -> None:
    assert link.startswith("http") or (ROOT / link).exists()
