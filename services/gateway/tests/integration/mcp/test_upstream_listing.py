"""The usable part of a server's listing, and the report of the rest."""

import logging

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.tool import ToolAnnotations
from services.gateway.tests.integration.mcp.harness import ServerHarness, connected

pytestmark = pytest.mark.integration

UNSTABLE = "changing: _meta 'at' differs between listings, so it is not part of the definition"
TWICE = "lie: listed 2 times, so none of them is used"


@pytest.mark.parametrize("flags", [(), ("--legacy",)], ids=["modern", "legacy"])
async def test_tools_left_out_of_a_listing_are_reported_and_stay_so(
    harness: ServerHarness, flags: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async with connected({"box": harness.stdio("--odd", *flags)}) as pool:
        assert pool.status()["box"].warnings == (TWICE, UNSTABLE)
        before = {tool.name: tool for tool in pool.list_tools()["box"]}
        assert before["changing"].meta == {"version": 1}
        assert "lie" not in before
        assert (await pool.call("box:grow", {"name": "again"}, 20)).status == "ok"
        await eventually(lambda: len(pool.list_tools()["box"]) == len(before) + 1)
        after = {tool.name: tool for tool in pool.list_tools()["box"]}
        assert after["changing"].definition_hash == before["changing"].definition_hash
    warnings = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert [one.getMessage() for one in warnings] == [f"box: {TWICE}", f"box: {UNSTABLE}"]


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
