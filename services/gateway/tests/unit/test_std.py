"""The standard library `pml-std`: tools that the gateway answers itself."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from jsonschema import Draft202012Validator

from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.errors import BusUnavailable, QueryErrorCode, QueryFailed
from pml_common.contracts import catalog
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.curation import Curate, LiftCapability, NameChoice, SaveCapability
from pml_common.contracts.decision import Policy
from pml_common.contracts.display_names import RESERVED_NAMESPACES
from pml_common.contracts.dns import (
    ChangeRecord,
    DnsQuery,
    Fork,
    LabelRecord,
    LookupRecord,
    QueryRecords,
    ReadHistory,
    Rename,
    SetVisibility,
    TagVersion,
    Transfer,
    Unyank,
    WhoisRecord,
    Yank,
)
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.std import server as std_server
from pml_gateway.adapters.std.server import MODULES
from pml_gateway.domain.tool_calls.repeatable import NotSent
from pml_gateway.ports import Caller, CallOrigin
from services.gateway.tests.support.builders import READ, SCOPE, WRITE, workflow
from services.gateway.tests.support.calling import call, running, tool_calls
from services.gateway.tests.support.dns import FakeDns, example
from services.gateway.tests.support.harness import FakeServers
from services.gateway.tests.support.std import Silent, std_servers

KEY = UUID(int=7)
READING = {"lookup", "query", "whois", "history"}
NAMED: JsonObject = {"name": "fs:read@2"}
CALLER: dict[str, Any] = {"scope": SCOPE, "principal": "mira"}


def origin(key: UUID = KEY) -> CallOrigin:
    return CallOrigin(Caller(SCOPE, "mira"), key)


async def asked(
    *calls: tuple[str, JsonObject, CallOrigin], server: str = "dns"
) -> Sequence[DnsQuery]:
    """Make these calls, which succeed, and return what the registry was asked."""
    bus = MemoryBus()
    dns = FakeDns(bus)
    await dns.start()
    servers = std_servers(bus)
    for tool, args, whose in calls:
        outcome = await servers.call(f"{server}:{tool}", args, 5.0, whose)
        assert outcome.status == "ok", outcome.message
    return dns.asked


async def outcome_of(failure: QueryFailed, tool: str, args: JsonObject) -> ToolOutcome:
    bus = MemoryBus()
    dns = FakeDns(bus, failure=failure)
    await dns.start()
    return await std_servers(bus).call(f"dns:{tool}", args, 5.0, origin())


def definitions(server: str = "dns") -> dict[str, ToolDefinition]:
    return {tool.name: tool for tool in std_servers(MemoryBus()).list_tools()[server]}


def test_ac15_the_tools_are_listed_like_those_of_a_connected_server() -> None:
    servers = std_servers(MemoryBus())
    assert set(servers.list_tools()) == set(servers.status()) == set(MODULES)
    assert set(MODULES) <= set(RESERVED_NAMESPACES)
    assert sorted(definitions()) == [
        "fork",
        "history",
        "lookup",
        "merge",
        "query",
        "rename",
        "tag",
        "transfer",
        "unyank",
        "visibility",
        "whois",
        "yank",
    ]
    assert servers.status()["dns"].tools == 12
    for tool in definitions().values():
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.description
        assert tool.title


def test_what_reads_is_allowed_by_default_and_what_changes_something_is_asked_about() -> None:
    verdicts = {name: Policy().verdict_on(tool)[0] for name, tool in definitions().items()}
    assert {name for name, verdict in verdicts.items() if verdict == "allow"} == READING
    assert {verdict for name, verdict in verdicts.items() if name not in READING} == {"ask"}


@pytest.mark.parametrize(
    ("tool", "args", "query", "query_type"),
    [
        ("lookup", NAMED, LookupRecord(**CALLER, reference="fs:read@2"), catalog.LOOKUP_RECORD),
        ("whois", NAMED, WhoisRecord(**CALLER, reference="fs:read@2"), catalog.WHOIS_RECORD),
        (
            "query",
            {"tags": ["json", "read"], "visibility": "public"},
            QueryRecords(**CALLER, tags=("json", "read"), visibility="public"),
            catalog.QUERY_RECORDS,
        ),
        (
            "history",
            {"name": "fs:read", "limit": 3},
            ReadHistory(**CALLER, reference="fs:read", limit=3),
            catalog.READ_HISTORY,
        ),
    ],
)
async def test_a_read_asks_for_the_caller_of_the_program_and_returns_the_registrys_answer(
    tool: str, args: JsonObject, query: DnsQuery, query_type: QueryType[DnsQuery, DnsQuery]
) -> None:
    assert await asked((tool, args, origin())) == [query]
    bus = MemoryBus()
    await FakeDns(bus).start()
    outcome = await std_servers(bus).call(f"dns:{tool}", args, 5.0, origin())
    assert outcome.result == example(query_type).model_dump(mode="json")


@pytest.mark.parametrize(
    ("tool", "args", "change"),
    [
        ("fork", {"source": "fs:read@2", "name": "fs:own"}, Fork(name="fs:own")),
        ("rename", {**NAMED, "new_name": "fs:load"}, Rename(name="fs:load")),
        ("tag", {**NAMED, "version_tag": "v1.2.0"}, TagVersion(version_tag="v1.2.0")),
        ("tag", {**NAMED, "add": ["io"]}, LabelRecord(add=("io",))),
        ("yank", {**NAMED, "reason": "wrong"}, Yank(reason="wrong")),
        ("unyank", NAMED, Unyank()),
        ("visibility", {**NAMED, "visibility": "org"}, SetVisibility(visibility="org")),
        ("transfer", {**NAMED, "owner": "ada"}, Transfer(owner="ada")),
    ],
)
async def test_a_change_is_asked_for_the_caller_and_a_repeated_call_is_the_same_request(
    tool: str, args: JsonObject, change: object
) -> None:
    first, again, other = await asked(
        (tool, args, origin()), (tool, args, origin()), (tool, args, origin(uuid4()))
    )
    assert isinstance(first, ChangeRecord)
    assert isinstance(other, ChangeRecord)
    assert (first.scope, first.principal, first.is_admin) == (SCOPE, "mira", False)
    assert (first.reference, first.change) == ("fs:read@2", change)
    assert first == again
    assert first.request_id != other.request_id


def test_what_is_learned_is_read_freely_and_named_on_approval() -> None:
    verdicts = {name: Policy().verdict_on(tool)[0] for name, tool in definitions("learn").items()}
    assert verdicts == {"curate": "ask", "feedback": "allow", "lift": "allow", "save": "ask"}


@pytest.mark.parametrize(
    ("tool", "args", "query"),
    [
        ("curate", {}, Curate(**CALLER)),
        (
            "curate",
            {"mode": "apply", "names": [{"capability_id": str(KEY), "name": "fs:read"}]},
            Curate(**CALLER, mode="apply", names=(NameChoice(capability_id=KEY, name="fs:read"),)),
        ),
        ("lift", NAMED, LiftCapability(**CALLER, reference="fs:read@2")),
        (
            "save",
            {"name": "fs:load", "workflow_id": str(KEY), "update": True},
            SaveCapability(**CALLER, name="fs:load", workflow_id=KEY, update=True),
        ),
        (
            "save",
            {"name": "fs:load", "capability": "unnamed_a7f3"},
            SaveCapability(**CALLER, name="fs:load", reference="unnamed_a7f3"),
        ),
    ],
)
async def test_names_are_asked_for_the_caller(tool: str, args: JsonObject, query: DnsQuery) -> None:
    assert await asked((tool, args, origin()), server="learn") == [query]


@pytest.mark.parametrize(
    ("tool", "args", "message"),
    [
        ("curate", {"mode": "apply"}, "give `names` for the mode `apply`"),
        ("save", {"name": "fs:load"}, "give either workflow_id or capability"),
        ("save", {"name": "dns:load", "capability": "fs:read"}, "name: the namespace 'dns'"),
    ],
)
async def test_what_is_wrong_with_a_name_is_said(tool: str, args: JsonObject, message: str) -> None:
    outcome = await std_servers(MemoryBus()).call(f"learn:{tool}", args, 5.0, origin())
    assert outcome.status == "tool_error"
    assert message in (outcome.message or "")


@pytest.mark.parametrize(
    ("tool", "args", "message"),
    [
        ("lookup", {}, "name: is missing"),
        ("lookup", {"name": "Fs:read"}, "name: the namespace 'Fs'"),
        ("lookup", {**NAMED, "principal": "ada"}, "principal: unknown field"),
        ("tag", {**NAMED, "version_tag": "1"}, "version_tag: must be a whole version tag"),
        ("tag", NAMED, "arguments: give either version_tag, or tags"),
        ("lockup", NAMED, "dns has no tool 'lockup'; did you mean lookup?"),
    ],
)
async def test_what_is_wrong_with_a_call_is_said_and_nothing_is_asked(
    tool: str, args: JsonObject, message: str
) -> None:
    bus = MemoryBus()
    dns = FakeDns(bus)
    await dns.start()
    outcome = await std_servers(bus).call(f"dns:{tool}", args, 5.0, origin())
    assert outcome.status == "tool_error"
    assert message in (outcome.message or "")
    assert dns.asked == []


@pytest.mark.parametrize("code", ["not_found", "conflict", "invalid"])
async def test_a_refusal_of_the_registry_is_an_error_of_the_tool(code: QueryErrorCode) -> None:
    for tool in ("lookup", "unyank"):
        outcome = await outcome_of(QueryFailed(code, "fs:read is not yours"), tool, NAMED)
        assert (outcome.status, outcome.message) == ("tool_error", "fs:read is not yours")


async def test_a_change_without_an_answer_is_unknown_and_a_read_an_error() -> None:
    away = QueryFailed("unavailable", "the registry did not answer")
    assert (await outcome_of(away, "lookup", NAMED)).status == "tool_error"
    assert (await outcome_of(away, "unyank", NAMED)).status == "unknown"


async def test_without_a_registry_nothing_was_sent() -> None:
    outcome = await std_servers(MemoryBus()).call("dns:unyank", NAMED, 5.0, origin())
    assert isinstance(outcome, NotSent)
    assert "Nothing was changed" in (outcome.message or "")


async def test_a_call_ends_within_its_time() -> None:
    servers = std_servers(Silent())
    assert (await servers.call("dns:lookup", NAMED, 0.01, origin())).status == "timeout"
    assert (await servers.call("dns:unyank", NAMED, 0.01, origin())).status == "unknown"


async def test_the_tools_are_announced_once_nats_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(std_server, "_ANNOUNCE_AGAIN_S", 0.0)
    servers, tries = std_servers(MemoryBus()), list[str]()

    async def on_tools(server: str, tools: tuple[ToolDefinition, ...]) -> None:
        tries.append(server)
        if len(tries) == 1:
            raise BusUnavailable("NATS does not answer")
        assert tools == servers.list_tools()[server]

    assert not servers.status()["dns"].announced
    announcing = asyncio.create_task(servers.announce(on_tools))
    await eventually(lambda: servers.status()["dns"].announced)
    await announcing
    await servers.reach("dns", 1.0)
    assert tries == ["dns", "dns", "learn", "meta"]


async def test_a_runs_call_is_its_principals_and_both_attempts_have_one_key() -> None:
    servers = FakeServers(outcomes=[ToolOutcome(status="unknown", message="broken")] * 2)
    run = running(workflow())
    first = call(run, READ)
    calls = tool_calls(servers)
    await calls.on_call_tool(first)
    await calls.on_call_tool(first.model_copy(update={"attempt": "again"}))
    await calls.on_call_tool(call(run, WRITE))
    callers = {each.caller for each in servers.origins}
    keys = [each.key for each in servers.origins]
    assert callers == {Caller(run.scope, run.requested.principal)}
    assert keys[0] == keys[1] == keys[2] == first.idempotency_key
    assert keys[3] != keys[0]
