"""The usable part of a server's listing, and the report of the rest."""

import logging

import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.tool import ToolAnnotations
from services.gateway.tests.integration.mcp.harness import EACH_GENERATION, ServerHarness, connected

pytestmark = pytest.mark.integration

UNSTABLE = "changing: _meta 'at' differs between listings, so it is not part of the definition"
ANSWER = (
    '{"jsonrpc":"2.0","id":$ID,"result":'
    '{"content":[{"type":"text","text":"fine"}],"resultType":"complete"}}'
)
TWICE = "lie: listed 2 times, so none of them is used"


@EACH_GENERATION
async def test_tools_left_out_of_a_listing_are_reported_and_stay_so(
    harness: ServerHarness, flags: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async with connected({"box": harness.stdio("--odd", *flags)}) as pool:
        assert pool.status()["box"].warnings == (TWICE, UNSTABLE)
        before = {tool.name: tool for tool in pool.list_tools()["box"]}
        assert before["changing"].meta == {"version": 1}
        assert "lie" not in before
        assert (await pool.call("box:grow", {"name": "again"}, PATIENCE_S)).status == "ok"
        await eventually(lambda: len(pool.list_tools()["box"]) == len(before) + 1)
        after = {tool.name: tool for tool in pool.list_tools()["box"]}
        assert after["changing"].definition_hash == before["changing"].definition_hash
    warnings = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert [one.getMessage() for one in warnings] == [f"box: {TWICE}", f"box: {UNSTABLE}"]


ANY: JsonValue = {"type": "object"}
ODD_EVERYWHERE: list[JsonValue] = [
    {"name": "good", "inputSchema": ANY},
    {"name": "bare"},
    {"name": "a b", "inputSchema": ANY},
    {"name": "listed", "inputSchema": ANY, "outputSchema": ["no"]},
    {
        "name": "nonsense",
        "inputSchema": ANY,
        "outputSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}},
    },
    {"name": "says", "inputSchema": ANY, "annotations": {"readOnlyHint": {}}},
    {"inputSchema": ANY},
    "tool",
    {"name": "fine", "inputSchema": ANY, "outputSchema": {"type": "object"}},
]
HEADER: JsonValue = {
    "name": "header",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "A"}}},
}
ARRAY: JsonValue = {"name": "array", "inputSchema": ANY, "outputSchema": {"type": "array"}}


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_malformed_tool_is_set_aside_alone_and_status_tells_why(
    harness: ServerHarness, version: str
) -> None:
    odd = harness.raw([*ODD_EVERYWHERE, HEADER, ARRAY], {"good": [ANSWER]}, version)
    async with connected({"odd": odd}) as pool:
        status = pool.status()["odd"]
        names = [tool.name for tool in pool.list_tools()["odd"]]
        outcome = await pool.call("odd:good", {}, PATIENCE_S)
    assert status.state == "ready"
    modern = version == "2026-07-28"
    assert names == (["array", "fine", "good"] if modern else ["fine", "good", "header"])
    assert (outcome.status, outcome.result) == ("ok", "fine")
    told = dict(warning.split(": set aside, ", 1) for warning in status.warnings)
    assert told.keys() == {
        "bare",
        "a b",
        "listed",
        "nonsense",
        "says",
        "tool 7 of the listing",
        "tool 8 of the listing",
        "header" if modern else "array",
    }
    assert told["bare"] == "inputSchema: is missing"
    assert told["a b"] == "its name is empty, has white space, or is too long"
    assert told["nonsense"].startswith("outputSchema is not a JSON Schema: 'nonsense' is not")


async def test_hints_count_only_if_the_server_is_trusted(harness: ServerHarness) -> None:
    trusted = harness.stdio()
    servers = {"mine": trusted, "theirs": trusted.model_copy(update={"trust": None})}
    async with connected(servers) as pool:
        listed = {
            server: next(tool for tool in tools if tool.name == "echo")
            for server, tools in pool.list_tools().items()
        }
        assert {name: status.hints_trusted for name, status in pool.status().items()} == {
            "mine": True,
            "theirs": False,
        }
    hints = ToolAnnotations(read_only=True, idempotent=True)
    assert (listed["mine"].annotations, listed["mine"].claims) == (hints, None)
    assert (listed["theirs"].annotations, listed["theirs"].claims) == (ToolAnnotations(), hints)
