"""Resources and prompts at PML's own endpoint, through the official client."""

import pytest
from mcp import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged
from mcp_types import (
    ElicitRequest,
    ElicitResult,
    InputRequiredResult,
    PromptReference,
    ResourceTemplateReference,
    TextResourceContents,
)

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.errors import Unavailable
from pml_gateway.domain.servers.offers import Offers
from pml_gateway.ports import ServerRefused
from services.gateway.tests.integration.mcp.served_endpoint import ServedEndpoint

pytestmark = pytest.mark.integration

OFFERS = Offers(
    ({"uri": "note:///a", "name": "a"},),
    ({"uriTemplate": "word://{word}", "name": "word"},),
    ({"name": "greet", "title": "Greet"},),
)
ASKED: JsonObject = {
    "resultType": "input_required",
    "inputRequests": {
        "who": {
            "method": "elicitation/create",
            "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}},
        }
    },
    "requestState": "begun",
}


async def test_what_servers_offer_is_listed_and_asked_for(mcp: ServedEndpoint, mode: str) -> None:
    mcp.offers.listed = {"notes": OFFERS, "more": OFFERS}
    async with mcp.client(mode) as client:
        can = client.server_capabilities
        assert can.resources is not None
        assert (can.resources.subscribe, can.resources.list_changed) == (False, True)
        assert can.prompts is not None
        assert can.prompts.list_changed
        assert can.completions is not None
        listed = await client.list_resources()
        assert [each.uri for each in listed.resources] == [
            "pml://more/note:///a",
            "pml://notes/note:///a",
        ]
        templates = await client.list_resource_templates()
        assert templates.resource_templates[0].uri_template == "pml://more/word://{word}"
        prompts = (await client.list_prompts()).prompts
        assert [(each.name, each.title) for each in prompts] == [
            ("more_greet", "Greet"),
            ("notes_greet", "Greet"),
        ]
        mcp.offers.answer = {"contents": [{"uri": "note:///a", "text": "A."}]}
        read = await client.read_resource("pml://notes/note:///a")
        assert read.contents == [TextResourceContents(uri="pml://notes/note:///a", text="A.")]
        assert mcp.offers.asked[-1] == ("notes", "resources/read", {"uri": "note:///a"}, {})
        mcp.offers.answer = {"contents": [{"uri": "note:///other", "text": "B."}]}
        other = await client.read_resource("pml://notes/note:///a")
        assert other.contents[0].uri == "note:///other"

        message: JsonObject = {"role": "user", "content": {"type": "text", "text": "Hello"}}
        mcp.offers.answer = {"messages": [message], "description": "Hi"}
        got = await client.get_prompt("notes_greet", {"who": "Ada"})
        assert got.description == "Hi"
        asked: JsonObject = {"name": "greet", "arguments": {"who": "Ada"}}
        assert mcp.offers.asked[-1] == ("notes", "prompts/get", asked, {})

        mcp.offers.answer = {"completion": {"values": ["Ada"]}}
        argument = {"name": "who", "value": "A"}
        template = ResourceTemplateReference(uri="pml://more/word://{word}")
        for ref in (PromptReference(name="more_greet"), template):
            completed = await client.complete(ref, argument)
            assert completed.completion.values == ["Ada"]
        assert [params["ref"] for _, _, params, _ in mcp.offers.asked[-2:]] == [
            {"type": "ref/prompt", "name": "greet"},
            {"type": "ref/resource", "uri": "word://{word}"},
        ]


async def test_errors_say_what_and_where(mcp: ServedEndpoint, mode: str) -> None:
    mcp.offers.listed = {"notes": OFFERS, "more": OFFERS}
    not_found = -32602 if mode == "auto" else -32002
    async with mcp.client(mode) as client:
        for uri, why in (("web://x", "no resource"), ("note:///a", "2 servers have")):
            with pytest.raises(MCPError, match=why) as missing:
                await client.read_resource(uri)
            assert (missing.value.code, missing.value.data) == (not_found, {"uri": uri})
        with pytest.raises(MCPError, match="did you mean more_greet"):
            await client.get_prompt("mor_greet")
        for answer, code in (
            (ServerRefused(-32602, "it is lost", {"uri": "there"}), -32602),
            (Unavailable("notes is not connected"), -32603),
        ):
            mcp.offers.answer = answer
            with pytest.raises(MCPError, match=str(answer)) as refused:
                await client.read_resource("pml://notes/note:///a")
            assert refused.value.code == code
        with pytest.raises(MCPError, match="cursor"):
            await client.list_prompts(cursor="?")


async def test_a_request_for_input_reaches_the_client_and_its_answer_the_server(
    mcp: ServedEndpoint,
) -> None:
    mcp.offers.listed, mcp.offers.answer = {"notes": OFFERS}, ASKED
    async with mcp.client("auto") as client:
        first = await client.session.get_prompt("notes_greet", allow_input_required=True)
        assert isinstance(first, InputRequiredResult)
        assert isinstance((first.input_requests or {})["who"], ElicitRequest)
        more: JsonObject = {"inputResponses": {"who": {"action": "decline"}}}
        await client.session.get_prompt(
            "notes_greet",
            input_responses={"who": ElicitResult(action="decline")},
            request_state=first.request_state,
            allow_input_required=True,
        )
        assert mcp.offers.asked[-1][2] == {"name": "greet", "requestState": "begun", **more}
    async with mcp.client("legacy") as client:
        with pytest.raises(MCPError, match="asks for input"):
            await client.get_prompt("notes_greet")


async def test_listening_clients_hear_of_changes_of_their_kind(mcp: ServedEndpoint) -> None:
    async with (
        mcp.client() as client,
        client.listen(
            resources_list_changed=True,
            prompts_list_changed=True,
            resource_subscriptions=["note:///a"],
        ) as changes,
    ):
        assert not changes.honored.resource_subscriptions
        await mcp.endpoint.offers_changed(Offers(), Offers(resources=OFFERS.resources))
        assert isinstance(await anext(changes), ResourcesListChanged)
        await mcp.endpoint.offers_changed(Offers(), Offers(prompts=OFFERS.prompts))
        assert isinstance(await anext(changes), PromptsListChanged)
