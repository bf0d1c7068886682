"""Lines of stdio servers that are no messages: the answer to the request that waits."""

import pytest
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from pml_gateway.adapters.mcp_client.unreadable import answer_to


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":5}', "result: must be an object"),
        (b'{"jsonrpc":"2.0","id":1}', "result: is missing"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"text":[,]}}', "it is not valid JSON: "),
        (b'{"jsonrpc":"2.0","id":1,"result":{"text":"\\ud800"}}', "it is not valid JSON: "),
    ],
)
def test_the_fault_of_an_answer_is_told_without_the_validators_text(line: bytes, why: str) -> None:
    with pytest.raises(ValidationError) as raised:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    answer = answer_to(line, raised.value, {1})
    assert answer is not None
    assert answer.error.message.startswith(f"its answer is no JSON-RPC message: {why}")
    assert "pydantic" not in answer.error.message
