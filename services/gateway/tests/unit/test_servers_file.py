"""`mcpServers` files as other clients write them: comments, `servers` and `inputs`, references."""

import json
from typing import Any

import pytest

from pml_gateway.domain.servers.references import Surroundings
from pml_gateway.domain.servers.server_config import HttpServer, StdioServer
from pml_gateway.domain.servers.servers_file import read_servers, servers_in

CLAUDE_CODE = """{
  "mcpServers": {
    "Sentry": {"type": "http", "url": "https://mcp.sentry.example/mcp"},
    "asana": {"type": "sse", "url": "https://mcp.asana.example/sse"},
    "api": {
      "type": "http",
      "url": "${API_BASE_URL:-https://api.example}/mcp",
      "headers": {"Authorization": "Bearer ${API_KEY}"}
    }
  }
}"""
VS_CODE = """{
  // Asked once, stored by the editor.
  "inputs": [
    {"type": "promptString", "id": "perplexity-key", "description": "API key", "password": true},
    {"type": "promptString", "id": "level", "default": "info"},
  ],
  "servers": {
    /* from the gallery */
    "Perplexity Ask": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "server-perplexity-ask", "--log=${input:level}"],
      "env": {"KEY": "${input:perplexity-key}", "HOME_OF": "${userHome}"},
    },
    "fetch": {"command": "uvx", "args": ["mcp-server-fetch", "--root", "${workspaceFolder}"]},
  },
}"""
OTHERS = {
    "gemini": {"httpUrl": "http://a/mcp", "trust": True, "excludeTools": ["rm"], "timeout": 30_000},
    "windsurf": {"serverUrl": "http://b/mcp", "disabledTools": ["rm"]},
    "fastmcp": {"url": "http://c/sse", "transport": "sse"},
    "cline": {"transportType": "stdio", "command": "x", "alwaysAllow": ["a"], "disabled": False},
    "copilot": {"type": "http", "url": "http://d/mcp", "tools": ["*"]},
    "streamable": {"type": "streamable-http", "url": "http://e/mcp"},
    "camel": {"type": "streamableHttp", "url": "http://f/mcp"},
    "snake": {"type": "streamable_http", "url": "http://g/mcp"},
}


def _around(**variables: str) -> Surroundings:
    return Surroundings(variables, {"workspaceFolder": "/w", "userHome": "/home/mira"})


def test_the_file_of_claude_code_is_read() -> None:
    servers = servers_in(read_servers(CLAUDE_CODE, _around(API_KEY="k")))
    assert servers == {
        "sentry": HttpServer(url="https://mcp.sentry.example/mcp"),
        "asana": HttpServer(type="sse", url="https://mcp.asana.example/sse"),
        "api": HttpServer(url="https://api.example/mcp", headers={"Authorization": "Bearer k"}),
    }


def test_the_file_of_vs_code_is_read_with_comments_and_inputs() -> None:
    first, second = read_servers(VS_CODE, _around(PML_INPUT_PERPLEXITY_KEY="k"))
    assert (first.title, first.name) == ("Perplexity Ask", "perplexity-ask")
    assert first.server == StdioServer(
        command="npx",
        args=("-y", "server-perplexity-ask", "--log=info"),
        env={"KEY": "k", "HOME_OF": "/home/mira"},
    )
    assert second.server == StdioServer(command="uvx", args=("mcp-server-fetch", "--root", "/w"))


def test_an_input_that_nothing_answers_is_a_fault_that_says_what_does() -> None:
    first, second = read_servers(VS_CODE, _around())
    assert first.faults == (
        "servers.Perplexity Ask.env.KEY: ${input:perplexity-key} (API key) is not answered: nobody "
        "is asked here; set PML_INPUT_PERPLEXITY_KEY in the environment, or write the value",
    )
    assert second.server is not None


def test_forms_of_other_clients_are_read() -> None:
    entries = read_servers(json.dumps({"mcpServers": OTHERS}), _around())
    assert not [entry.faults for entry in entries if entry.faults]
    servers = servers_in(entries)
    assert [server.type for server in servers.values()] == [
        *("http", "http", "sse", "stdio", "http", "http", "http", "http")
    ]
    assert servers["gemini"].timeout == 30.0
    assert not servers["windsurf"].tool_lists.offers("rm")


def _args(*given: str, **variables: str) -> Any:
    """Return the arguments of an entry with references filled in, or its faults."""
    text = json.dumps({"mcpServers": {"s": {"command": "x", "args": given}}})
    (entry,) = read_servers(text, _around(**variables))
    return entry.faults or (isinstance(entry.server, StdioServer) and entry.server.args)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("--root=${ROOT}/${A}", "--root=/r/a"),
        ("${env:ROOT}", "/r"),
        ("${NONE:-a default}", "a default"),
        ("${EMPTY:-other}", "other"),
        ("${EMPTY}", ""),
        ("${env:NONE:-d}", "d"),
        ("${NONE:-}", ""),
        ("${ROOT:-other}", "/r"),
        ("$ROOT ${} ${a b} $${", "$ROOT ${} ${a b} $${"),
    ],
)
def test_references_are_filled_in_wherever_they_stand(given: str, found: str) -> None:
    assert _args(given, ROOT="/r", A="a", EMPTY="") == (found,)


def test_a_missing_variable_is_named_with_its_field() -> None:
    assert _args("${A}", "${env:A}${B}", "${command:pick}") == (
        "mcpServers.s.args.0: ${A} is not set in the environment",
        "mcpServers.s.args.1: ${env:A} is not set in the environment",
        "mcpServers.s.args.1: ${B} is not set in the environment",
        "mcpServers.s.args.2: ${command:pick} is not supported: write the value, or ${NAME}",
    )


def test_a_variable_of_the_environment_goes_before_a_place() -> None:
    assert _args("${userHome}", userHome="/mine") == ("/mine",)


def test_a_file_with_a_byte_order_mark_is_read() -> None:
    assert read_servers('\ufeff{"mcpServers": {}}', _around()) == ()


@pytest.mark.parametrize("inputs", [3, [], [3], [{"no": "id"}]])
def test_inputs_of_another_shape_answer_nothing(inputs: object) -> None:
    entry = {"command": "x", "args": ["${input:a.b}"]}
    text = json.dumps({"inputs": inputs, "servers": {"s": entry}})
    (read,) = read_servers(text, Surroundings())
    assert "set PML_INPUT_A_B in the environment" in read.faults[0]
