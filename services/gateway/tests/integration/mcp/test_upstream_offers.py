"""Resources and prompts of real servers, over every transport and generation of the protocol."""

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.tool import JsonObject
from pml_gateway.adapters.mcp_client.server_pool import ServerPool
from pml_gateway.domain.servers.offers import Offers
from pml_gateway.domain.servers.server_config import ServerConfig
from pml_gateway.domain.tool_calls.tool_result import Answered
from pml_gateway.ports import ServerRefused
from services.gateway.tests.integration.mcp.harness import ServerHarness, connected

pytestmark = pytest.mark.integration

NOTE = {"uri": "note:///first", "name": "first", "title": "A note"}


async def test_what_a_server_offers_is_listed_read_and_kept_current(reached: ServerConfig) -> None:
    async with connected({"notes": reached}) as pool:
        offers = pool.offers()["notes"]
        assert [each["uri"] for each in offers.resources] == ["note:///first", "note:///second"]
        assert offers.resources[0] == NOTE
        assert offers.templates == ({"uriTemplate": "word://{word}", "name": "word"},)
        assert offers.prompts == ({"name": "greet"},)
        read = await pool.ask("notes", "resources/read", {"uri": "note:///first"}, {}, PATIENCE_S)
        assert read["contents"] == [{"uri": "note:///first", "text": "read note:///first"}]
        greeting: JsonObject = {"name": "greet", "arguments": {"who": "Ada"}}
        got = await pool.ask("notes", "prompts/get", greeting, {}, PATIENCE_S)
        said = {"type": "text", "text": "greet {'who': 'Ada'}"}
        assert got["messages"] == [{"role": "user", "content": said}]
        half: JsonObject = {
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": "who", "value": "A"},
        }
        completed = await pool.ask("notes", "completion/complete", half, {}, PATIENCE_S)
        assert completed["completion"] == {"values": ["greet A"]}
        with pytest.raises(ServerRefused, match="it is lost") as refused:
            await pool.ask("notes", "resources/read", {"uri": "note:///lost"}, {}, PATIENCE_S)
        assert (refused.value.code, refused.value.data) == (-32602, {"uri": "note:///lost"})

        await pool.call("notes:write", {"name": "third"}, PATIENCE_S)
        offered = await eventually(lambda: _with_third(pool))
        assert [each["name"] for each in offered.prompts] == ["greet", "third"]


async def _with_third(pool: ServerPool) -> Offers | None:
    offers = pool.offers()["notes"]
    return offers if len(offers.resources) == 3 and len(offers.prompts) == 2 else None


async def test_a_link_in_a_result_is_one_that_our_clients_can_read(harness: ServerHarness) -> None:
    servers = {"a": harness.stdio(), "b": harness.stdio("--legacy")}

    async def linked(pool: ServerPool, uri: str) -> object:
        outcome = await pool.call("a:link", {"uri": uri}, PATIENCE_S)
        assert isinstance(outcome, Answered)
        assert isinstance(outcome.result, list)
        return outcome.result

    async with connected(servers) as pool:
        assert await linked(pool, "note:///first") == [
            {"type": "resource_link", "name": "linked", "uri": "pml://a/note:///first"}
        ]
    async with connected({"a": harness.stdio()}) as pool:
        for listed in ("note:///first", "word://any"):
            assert await linked(pool, listed) == [
                {"type": "resource_link", "name": "linked", "uri": listed}
            ]
        assert await linked(pool, "note:///unlisted") == [
            {"type": "resource_link", "name": "linked", "uri": "pml://a/note:///unlisted"}
        ]
