"""Trust in servers' hints."""

import json
from pathlib import Path

import pytest

from pml_gateway.domain.servers.references import Surroundings
from pml_gateway.domain.servers.server_config import HttpServer, StdioServer
from pml_gateway.domain.servers.server_trust import trusts_hints
from pml_gateway.domain.servers.servers_file import read_servers, servers_in

EXAMPLES = Path(__file__).parents[4] / "examples"
FILES = "@modelcontextprotocol/server-filesystem"


def trusted(line: str, **more: object) -> bool:
    command, *args = line.split()
    entry = {"command": command, "args": args, **more}
    return trusts_hints(StdioServer.model_validate(entry))


@pytest.mark.parametrize(
    "line",
    [
        f"npx -y {FILES} /data",
        f"npx --yes --quiet {FILES}@2026.8.31 /data",
        f"npx {FILES}@latest",
        f"bunx {FILES}",
        f"pnpm dlx {FILES}",
        f"deno run --quiet --no-config --allow-read=. --allow-write npm:{FILES}@2026.8.31 .",
        "uvx mcp-server-git --repository /data",
        "uvx --offline MCP_Server.git@2026.10.19",
        "uvx mcp-server-time==2026.1.1",
        "uv tool run mcp-server-git",
        "pipx run mcp-server-git",
        "python -m mcp_server_git --repository /data",
        "python3 -m mcp_server_time",
    ],
)
def test_well_known_servers_are_known_by_command_and_package(line: str) -> None:
    assert trusted(line)
    assert not trusted(line, trust="none")


@pytest.mark.parametrize(
    "line",
    [
        "mcp-server-git",
        "./npx @modelcontextprotocol/server-filesystem",
        "/opt/npx @modelcontextprotocol/server-filesystem",
        "npx",
        "npx -y",
        f"npx -y other {FILES}",
        f"npx --registry=http://127.0.0.1:1 {FILES}",
        f"npx -p {FILES} other",
        f"npx {FILES}-pro",
        f"npx {FILES}@npm:other@1.0.0",
        f"npx {FILES}@git+ssh://127.0.0.1/x",
        f"npx {FILES}@",
        f"npx ./{FILES}",
        "npx mcp-server-git",
        f"uvx {FILES}",
        "uvx --from other mcp-server-git",
        "uvx --with other mcp-server-git",
        "uvx mcp-server-git@/opt/other",
        "uvx mcp-server-git2",
        "uvx mcp-server-fetch",
        "uv run mcp-server-git",
        f"deno run {FILES}",
        f"deno run --import-map=x npm:{FILES}",
        f"deno task npm:{FILES}",
        "python mcp_server_git",
        "python -c mcp_server_git",
        "python -m",
        "python -m other mcp_server_git",
        "docker run mcp/git",
    ],
)
def test_what_may_be_something_else_is_not_known(line: str) -> None:
    assert not trusted(line)
    assert trusted(line, trust="hints")


@pytest.mark.parametrize(
    "variable", ["NPM_CONFIG_REGISTRY", "npm_config_registry", "UV_INDEX_URL", "PYTHONPATH", "PATH"]
)
def test_variables_that_lead_elsewhere_leave_nothing_known(variable: str) -> None:
    assert trusted("uvx mcp-server-git", env={"TOKEN": "x"})
    assert not trusted("uvx mcp-server-git", env={variable: "x"})


def test_a_server_over_http_is_trusted_by_configuration_alone() -> None:
    assert not trusts_hints(HttpServer(url="https://mcp-server-git.example/mcp"))
    assert trusts_hints(HttpServer(url="https://example.org/mcp", trust="hints"))


def test_a_name_in_the_file_makes_nobody_known() -> None:
    servers = {"filesystem": {"command": "evil"}, "mcp-server-git": {"command": "evil"}}
    parsed = servers_in(read_servers(json.dumps({"mcpServers": servers}), Surroundings()))
    assert not any(trusts_hints(server) for server in parsed.values())


def test_the_examples_say_what_they_trust() -> None:
    file = (EXAMPLES / "mcp.json").read_text(encoding="utf-8")
    parsed = servers_in(read_servers(file, Surroundings({"FOLDER": "/data"})))
    assert [server.trust for server in parsed.values()] == ["hints", "hints"]
