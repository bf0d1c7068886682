"""The `mcpServers` file: parsing and error messages."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_gateway.domain.servers.server_config import (
    HttpServer,
    ServersInvalid,
    StdioServer,
    child_environment,
    parse_servers,
)


def _file(**servers: Any) -> str:
    return json.dumps({"mcpServers": servers})


def _faults(text: str) -> tuple[str, ...]:
    with pytest.raises(ServersInvalid) as invalid:
        parse_servers(text, {})
    assert str(invalid.value) == "; ".join(invalid.value.faults)
    return invalid.value.faults


def test_both_kinds_of_server_are_read() -> None:
    servers = parse_servers(
        _file(
            fs={"command": "deno", "args": ["run", "x"], "env": {"A": "1"}, "cwd": "/data"},
            web={"url": "https://example.org/mcp", "headers": {"X-Key": "k"}, "trust": "hints"},
        ),
        {},
    )
    assert servers == {
        "fs": StdioServer(command="deno", args=("run", "x"), env={"A": "1"}, cwd="/data"),
        "web": HttpServer(url="https://example.org/mcp", headers={"X-Key": "k"}, trust="hints"),
    }


def test_variables_are_filled_in_wherever_they_stand() -> None:
    servers = parse_servers(
        _file(
            web={"url": "http://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            fs={"command": "run", "args": ["--root", "${ROOT}/${HOST}", "$HOME", "${}"]},
        ),
        {"HOST": "here", "TOKEN": "secret", "ROOT": "/r"},
    )
    assert servers["web"] == HttpServer(
        url="http://here/mcp", headers={"Authorization": "Bearer secret"}
    )
    assert servers["fs"] == StdioServer(command="run", args=("--root", "/r/here", "$HOME", "${}"))


def test_a_missing_variable_is_named_with_its_field() -> None:
    faults = _faults(_file(fs={"command": "x", "args": ["${A}"], "env": {"KEY": "${A}${B}"}}))
    assert faults == (
        "mcpServers.fs.args.0: ${A} is not set in the environment",
        "mcpServers.fs.env.KEY: ${A} is not set in the environment",
        "mcpServers.fs.env.KEY: ${B} is not set in the environment",
    )


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({}, 'mcpServers.s: needs either "command" (stdio) or "url" (HTTP)'),
        ({"command": "x", "url": "http://y"}, 'mcpServers.s: needs either "command"'),
        ("x", "mcpServers.s: must be an object"),
        ({"command": ""}, "mcpServers.s.command: String should have at least 1 character"),
        ({"command": "x", "args": "y"}, "mcpServers.s.args: Input should be a valid tuple"),
        ({"command": "x", "args": [1]}, "mcpServers.s.args.0: Input should be a valid string"),
        ({"command": "x", "env": {"A": 1}}, "mcpServers.s.env.A: Input should be a valid string"),
        ({"url": "ftp://y"}, "mcpServers.s.url: Value error, must be an http:// or https:// URL"),
        ({"url": "http:///mcp"}, "mcpServers.s.url: Value error, must be an http:// or https://"),
        ({"url": "http://y", "type": "sse"}, "mcpServers.s.type: Input should be 'http'"),
        ({"command": "x", "disabled": "?"}, "mcpServers.s.disabled: Input should be a valid bool"),
    ],
)
def test_a_faulty_entry_is_named_with_its_field(entry: object, fault: str) -> None:
    assert _faults(_file(s=entry))[0].startswith(fault)


@pytest.mark.parametrize("name", ["", "Fs", "f s", "fs:x", "-fs", "_fs", "ü", "a" * 64])
def test_a_name_that_could_not_be_part_of_a_tool_id_is_refused(name: str) -> None:
    (fault,) = _faults(_file(**{name: {"command": "x"}}))
    assert fault.startswith(f"mcpServers.{name}: not a server name")


def test_our_own_names_are_refused() -> None:
    (fault,) = _faults(_file(cap={"command": "x"}))
    assert fault.startswith("mcpServers.cap: this name is taken")


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"mcpServers": []}'])
def test_a_file_of_another_shape_is_refused(text: str) -> None:
    assert len(_faults(text)) == 1


def test_broken_json_is_located() -> None:
    assert "line 2 column 1" in _faults('{"mcpServers":\n')[0]


def test_every_fault_is_told_at_once() -> None:
    assert len(_faults(_file(a={}, b={"url": "x"}, C={"command": "x"}))) == 3


def test_a_disabled_entry_is_passed_over_whatever_it_holds() -> None:
    assert parse_servers(_file(off={"disabled": True, "args": ["${NONE}"]}), {}) == {}


def test_fields_of_other_programs_are_known_to_have_no_effect() -> None:
    server = parse_servers(_file(s={"command": "x", "timeout": 3, "autoApprove": []}), {})["s"]
    assert server.ignored_fields == ("autoApprove",)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(90, 90.0), (0.5, 0.5), (3600, 3600.0), (60_000, 60.0), ("500ms", 0.5), ("5m", 300.0)],
)
def test_a_time_limit_is_in_seconds_unless_it_is_long_or_has_a_unit(
    given: object, seconds: float
) -> None:
    server = parse_servers(_file(s={"command": "x", "timeout": given}), {})["s"]
    assert server.timeout == seconds


@pytest.mark.parametrize("given", [0, -1, "soon", "5h", [5], True])
def test_a_time_limit_that_is_none_is_refused(given: object) -> None:
    (fault,) = _faults(_file(s={"command": "x", "timeout": given}))
    assert fault.startswith("mcpServers.s.timeout: ")


def test_secrets_stay_out_of_what_is_printed() -> None:
    server = parse_servers(_file(s={"url": "http://y", "headers": {"K": "hush"}}), {})["s"]
    assert "hush" not in repr(server)


def test_a_child_gets_what_connects_it_and_its_own_variables_win() -> None:
    server = StdioServer(command="x", env={"LANG": "own", "TOKEN": "t"})
    ours = {"LANG": "C", "SSL_CERT_FILE": "/ca", "PML_SECRET": "s"}
    assert child_environment(server, ours) == {
        "LANG": "own",
        "TOKEN": "t",
        "SSL_CERT_FILE": "/ca",
    }


def _told(text: str) -> tuple[str, ...]:
    try:
        parse_servers(text, {})
    except ServersInvalid as invalid:
        return invalid.faults
    return ()


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    assert _told(text) or json.loads(text)["mcpServers"] == {}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_entry_is_read_or_refused_by_name(entry: object) -> None:
    assert all(fault.startswith("mcpServers.s") for fault in _told(_file(s=entry)))
