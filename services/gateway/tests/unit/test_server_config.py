"""The entries of an `mcpServers` file: models, limits, error messages."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.server_names import safe_name
from pml_gateway.domain.servers.references import Surroundings
from pml_gateway.domain.servers.server_config import (
    HttpServer,
    OAuthClient,
    ServerConfig,
    StdioServer,
    child_environment,
)
from pml_gateway.domain.servers.servers_file import (
    ServerEntry,
    ServersInvalid,
    read_servers,
    servers_in,
)
from pml_gateway.domain.servers.tool_lists import ToolLists


def _file(**servers: Any) -> str:
    return json.dumps({"mcpServers": servers})


def _servers(text: str, **variables: str) -> dict[str, ServerConfig]:
    entries = read_servers(text, Surroundings(variables))
    assert not [entry for entry in entries if entry.faults]
    return servers_in(entries)


def _faults(text: str) -> tuple[str, ...]:
    """Return the faults of all entries, or of the file."""
    try:
        entries = read_servers(text, Surroundings())
    except ServersInvalid as invalid:
        return invalid.faults
    return tuple(fault for entry in entries for fault in entry.faults)


def test_both_kinds_of_server_are_read() -> None:
    servers = _servers(
        _file(
            fs={"command": "deno", "args": ["run", "x"], "env": {"A": "1"}, "cwd": "/data"},
            web={"url": "https://example.org/mcp", "headers": {"X-Key": "k"}, "trust": "hints"},
        )
    )
    assert servers == {
        "fs": StdioServer(command="deno", args=("run", "x"), env={"A": "1"}, cwd="/data"),
        "web": HttpServer(url="https://example.org/mcp", headers={"X-Key": "k"}, trust="hints"),
    }


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({}, 'mcpServers.s: needs either "command" (stdio) or "url" (HTTP)'),
        ({"command": "x", "url": "http://y"}, 'mcpServers.s: needs either "command"'),
        ("x", "mcpServers.s: must be an object"),
        ({"command": ""}, "mcpServers.s.command: must have a length of at least 1"),
        ({"command": "x", "args": "y"}, "mcpServers.s.args: must be a list"),
        ({"command": "x", "args": [1]}, "mcpServers.s.args.0: must be a string"),
        ({"command": "x", "env": {"A": 1}}, "mcpServers.s.env.A: must be a string"),
        ({"url": "ftp://y"}, "mcpServers.s.url: must be an http:// or https:// URL"),
        ({"url": "http:///mcp"}, "mcpServers.s.url: must be an http:// or https://"),
        ({"url": "http://y", "type": "ws"}, "mcpServers.s.type: must be 'http' or 'sse'"),
        ({"url": "http://y", "type": 1}, "mcpServers.s.type: must be 'http' or 'sse'"),
        ({"command": "x", "type": "sse"}, "mcpServers.s.type: must be 'stdio'"),
        ({"command": "x", "disabled": "?"}, "mcpServers.s.disabled: must be true or false"),
        ({"command": "x", "trust": "all"}, "mcpServers.s.trust: must be 'hints' or 'none'"),
        ({"command": "x", "tools": "read"}, "mcpServers.s.tools: must be a list of"),
        ({"command": "x", "tools": {"read": {}}}, "mcpServers.s.tools: must be a"),
        ({"command": "x", "tools": [1]}, "mcpServers.s.tools: must be a list of"),
        ({"command": "x", "includeTools": "r"}, "mcpServers.s.includeTools: must be a list"),
    ],
)
def test_a_faulty_entry_is_named_with_its_field_and_stops_no_other(
    entry: object, fault: str
) -> None:
    text = _file(s=entry, other={"command": "x"})
    assert _faults(text)[0].startswith(fault)
    entries = read_servers(text, Surroundings())
    assert servers_in(entries) == {"other": StdioServer(command="x")}


def test_an_entry_that_is_nested_too_deeply_is_faulty() -> None:
    depth = 600
    text = '{"mcpServers": {"s": {"command": "x", "y": ' + "[" * depth + "]" * depth + "}}}"
    (fault,) = _faults(text)
    assert "nested too deeply" in fault or "recursion" in fault


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("fs", "fs"),
        ("a-_-", "a-_-"),
        ("GitHub", "github"),
        ("My files (work)", "my-files-work"),
        ("@scope/server.name", "scope-server-name"),
        ("_fs", "fs"),
        ("Gedächtnis", "gedachtnis"),
        ("データ", "server-16773842"),
        ("", "server-e3b0c442"),
        ("A" * 64, "a" * 54 + "-d53eda7a"),
    ],
)
def test_a_name_of_any_text_has_a_safe_form(title: str, name: str) -> None:
    (entry,) = read_servers(_file(**{title: {"command": "x"}}), Surroundings())
    assert (entry.title, entry.name) == (title, name)
    assert entry.server is not None


@given(st.text())
def test_every_name_has_a_safe_form_that_is_its_own(title: str) -> None:
    assert safe_name(safe_name(title)) == safe_name(title)


def test_of_two_names_with_one_safe_form_the_later_is_faulty() -> None:
    text = _file(
        **{"Off": {"command": "o", "disabled": True}, "off": {"command": "1"}},
        **{"My fs": {"command": "2"}, "my-fs": {"command": "3"}},
    )
    entries = read_servers(text, Surroundings())
    assert {name: one.type for name, one in servers_in(entries).items()} == {
        "off": "stdio",
        "my-fs": "stdio",
    }
    assert entries[3].name == "my-fs#4"
    assert entries[3].faults == (
        "mcpServers.my-fs: its safe form 'my-fs' is that of 'My fs', which comes first; choose "
        "another name",
    )


def test_our_own_names_are_refused() -> None:
    (fault,) = _faults(_file(Cap={"command": "x"}))
    assert fault.startswith("mcpServers.Cap: this name is taken")


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"mcpServers": []}'])
def test_a_file_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(ServersInvalid) as invalid:
        read_servers(text, Surroundings())
    assert (str(invalid.value),) == invalid.value.faults


def test_broken_json_is_located() -> None:
    assert "line 2 column 1" in _faults('{"mcpServers":\n')[0]


def test_every_fault_is_told_at_once() -> None:
    assert len(_faults(_file(a={}, b={"url": "x"}, cap={"command": "x"}))) == 3


@pytest.mark.parametrize("off", [{"disabled": True}, {"enabled": False}])
def test_a_disabled_entry_is_passed_over_whatever_it_holds(off: dict[str, bool]) -> None:
    entries = read_servers(_file(off={**off, "args": ["${NONE}"]}), Surroundings())
    assert entries == (ServerEntry("off", "off", disabled=True),)


def test_fields_of_other_programs_are_known_to_have_no_effect() -> None:
    entry: dict[str, object] = {
        "command": "x",
        "timeout": 3,
        "autoApprove": [],
        "envFile": ".env",
        "dev": {},
    }
    (read,) = read_servers(_file(s={**entry, "description": "d", "trust": True}), Surroundings())
    assert read.notes == (
        "autoApprove has no effect here: policy.json says what runs without approval",
        "dev has no effect here",
        "envFile is not read: write its variables into env",
    )
    assert read.server is not None
    assert read.server.trust is None


@pytest.mark.parametrize(
    ("entry", "allow", "deny"),
    [
        ({}, None, ()),
        ({"tools": ["*"]}, ("*",), ()),
        ({"tools": {"deny": ["write_*"]}}, None, ("write_*",)),
        ({"tools": {"allow": ["read_*"], "deny": []}}, ("read_*",), ()),
        ({"includeTools": ["a"], "excludeTools": ["b"]}, ("a",), ("b",)),
        ({"allowedTools": ["a"], "disabledTools": ["b"]}, ("a",), ("b",)),
        ({"tools": [], "enabled_tools": ["a"]}, ("a",), ()),
    ],
)
def test_lists_of_tools_are_read_in_the_forms_of_other_clients(
    entry: dict[str, object], allow: tuple[str, ...] | None, deny: tuple[str, ...]
) -> None:
    server = _servers(_file(s={"command": "x", **entry}))["s"]
    assert server.tool_lists == ToolLists(allow, deny)


def test_lists_of_tools_have_patterns_and_denial_wins() -> None:
    lists = ToolLists(("read_*", "stat"), ("*_secret", "gone"))
    names = ("read_file", "read_secret", "stat", "write")
    assert [name for name in names if lists.offers(name)] == ["read_file", "stat"]
    assert lists.without_tool(names) == ("gone",)
    assert ToolLists().offers("any")
    assert not ToolLists(()).offers("any")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(90, 90.0), (0.5, 0.5), (3600, 3600.0), (60_000, 60.0), ("500ms", 0.5), ("5m", 300.0)],
)
def test_a_time_limit_is_in_seconds_unless_it_is_long_or_has_a_unit(
    given: object, seconds: float
) -> None:
    server = _servers(_file(s={"command": "x", "timeout": given}))["s"]
    assert server.timeout == seconds


@pytest.mark.parametrize("given", [0, -1, "soon", "5h", [5], True])
def test_a_time_limit_that_is_none_is_refused(given: object) -> None:
    (fault,) = _faults(_file(s={"command": "x", "timeout": given}))
    assert fault.startswith("mcpServers.s.timeout: ")


@pytest.mark.parametrize(("given", "prefix"), [(True, True), (False, False), ("", False)])
def test_an_entry_says_whether_its_tools_are_listed_with_its_name(
    given: object, prefix: bool
) -> None:
    assert _servers(_file(s={"command": "x", "prefix": given}))["s"].prefix is prefix
    assert _servers(_file(s={"command": "x"}))["s"].prefix is True


def test_a_prefix_of_another_kind_is_refused() -> None:
    (fault,) = _faults(_file(s={"command": "x", "prefix": "my"}))
    assert fault.startswith("mcpServers.s.prefix: ")
    assert "must be true, or false" in fault


def test_secrets_stay_out_of_what_is_printed() -> None:
    server = _servers(_file(s={"url": "http://y", "headers": {"K": "hush"}}))["s"]
    assert "hush" not in repr(server)


def test_a_child_gets_what_connects_it_and_its_own_variables_win() -> None:
    server = StdioServer(command="x", env={"LANG": "own", "TOKEN": "t"})
    connects = {"SSL_CERT_FILE": "/ca", "UV_SYSTEM_CERTS": "true", "DENO_TLS_CA_STORE": "system"}
    ours = {"LANG": "C", "PML_SECRET": "s", **connects}
    assert child_environment(server, ours) == {
        "LANG": "own",
        "TOKEN": "t",
        **connects,
    }


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    assert _faults(text) or read_servers(text, Surroundings()) == ()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_entry_is_read_or_refused_by_name(entry: object) -> None:
    assert all(fault.startswith("mcpServers.s") for fault in _faults(_file(s=entry)))


def _oauth(**entry: object) -> HttpServer:
    server = _servers(_file(s={"url": "http://y", **entry}))["s"]
    assert isinstance(server, HttpServer)
    return server


def test_a_client_for_logins_is_read_in_the_forms_of_other_clients() -> None:
    found = _oauth(
        oauth={
            "clientId": "c",
            "clientSecret": "hush",
            "scopes": ["a", "b"],
            "callbackPort": 8123,
            "clientMetadataUrl": "https://pml.example/client.json",
            "audience": "ignored",
        }
    )
    assert found.oauth == OAuthClient(
        client_id="c",
        client_secret="hush",
        scope="a b",
        callback_port=8123,
        client_metadata_url="https://pml.example/client.json",
    )
    assert "hush" not in repr(found)
    assert _oauth(oauth={"scope": "a b"}).oauth == OAuthClient(scope="a b")


def test_a_token_of_the_entry_goes_before_a_login() -> None:
    assert _oauth().logs_in
    assert _oauth(oauth=True).logs_in
    assert not _oauth(oauth=False).logs_in
    assert not _oauth(headers={"authorization": "Basic x"}).logs_in
    own = _oauth(headers={"X": "1"}, oauth={"token": "t"})
    assert own.sent_headers == {"X": "1", "Authorization": "Bearer t"}
    assert not own.logs_in


@pytest.mark.parametrize(
    ("oauth", "fault"),
    [
        ("yes", "oauth: must be an object"),
        ({"clientMetadataUrl": "http://x/y"}, "oauth.clientMetadataUrl: must be an https"),
        ({"clientMetadataUrl": "https://x/"}, "oauth.clientMetadataUrl: must be an https"),
        ({"callbackPort": 0}, "oauth.callbackPort: must be greater"),
    ],
)
def test_a_client_with_a_fault_is_told_with_its_field(oauth: object, fault: str) -> None:
    (told,) = _faults(_file(s={"url": "http://y", "oauth": oauth}))
    assert told.startswith(f"mcpServers.s.{fault}")
