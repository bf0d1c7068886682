"""Malformed items of any listing are set aside alone."""

from typing import Any

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import CLIENT_CAPABILITIES_META_KEY, JSONRPCRequest, JSONRPCResponse

from pml_gateway.adapters.mcp_client.capabilities import declared, with_capabilities
from pml_gateway.adapters.mcp_client.listings import SET_ASIDE, with_usable_items


@pytest.mark.parametrize(
    ("field", "fine", "bad", "said"),
    [
        ("prompts", {"name": "a"}, {"arguments": []}, "prompt 1 of the listing: set aside, name"),
        ("resources", {"name": "a", "uri": "x:a"}, {"name": "b"}, "b: set aside, uri"),
        (
            "resourceTemplates",
            {"name": "a", "uriTemplate": "x:{a}"},
            5,
            "resource template 1 of the listing: set aside, must",
        ),
    ],
)
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_a_malformed_item_is_set_aside_alone(
    version: str, field: str, fine: Any, bad: Any, said: str
) -> None:
    listing = JSONRPCResponse(jsonrpc="2.0", id=1, result={field: [bad, fine]})
    message = with_usable_items(SessionMessage(listing), version).message
    assert isinstance(message, JSONRPCResponse)
    assert message.result[field] == [fine]
    assert str(message.result["_meta"][SET_ASIDE][0]).startswith(said)


def test_a_request_declares_what_its_own_client_can_be_asked_for() -> None:
    params: dict[str, Any] = {**with_capabilities({"name": "a"}, {"sampling": {}})}
    legacy = JSONRPCRequest(jsonrpc="2.0", id=1, method="prompts/get", params=params)
    message = declared(SessionMessage(legacy)).message
    assert isinstance(message, JSONRPCRequest)
    assert message.params == {"name": "a", "_meta": {}}
    stamped: dict[str, Any] = {**params["_meta"], CLIENT_CAPABILITIES_META_KEY: {}}
    modern = legacy.model_copy(update={"params": {"name": "a", "_meta": stamped}})
    message = declared(SessionMessage(modern)).message
    assert isinstance(message, JSONRPCRequest)
    assert message.params == {
        "name": "a",
        "_meta": {CLIENT_CAPABILITIES_META_KEY: {"sampling": {}}},
    }
    other = SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"))
    assert declared(other) is other
