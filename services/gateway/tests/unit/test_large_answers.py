"""Parts of responses, as they pass the bound of an event."""

import json

import pytest
from starlette.types import Message

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.tool import JsonObject
from pml_gateway.entrypoints.mcp.large_answers import MAX_EVENT_BYTES, large_answers

START: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"Content-Type", b"text/event-stream"), (b"x", b"y")],
}
PING: Message = {"type": "http.response.body", "body": b": ping\r\n\r\n", "more_body": True}
END: Message = {"type": "http.response.body", "body": b"", "more_body": False}
LARGE = "x" * MAX_EVENT_BYTES


def event(data: str) -> Message:
    body = f"id: 1\r\nevent: message\r\ndata: {data}\r\n\r\n".encode()
    return {"type": "http.response.body", "body": body, "more_body": True}


def answer(result: JsonObject) -> Message:
    return event(json.dumps({"jsonrpc": "2.0", "id": 7, "result": result}))


async def passed(*parts: Message) -> list[Message]:
    """Return what reaches the client."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async with large_answers(send, hold_s=PATIENCE_S) as response:
        for part in parts:
            await response(part)
    return sent


async def test_a_large_answer_that_comes_first_is_plain_json() -> None:
    late = event("{}")
    start, body = await passed(START, answer({"text": LARGE}), late, END)
    assert start["headers"] == [(b"x", b"y"), (b"content-type", b"application/json")]
    assert json.loads(body["body"]) == {"jsonrpc": "2.0", "id": 7, "result": {"text": LARGE}}
    assert body["more_body"] is False


async def test_plain_json_is_the_answer_as_it_was_written() -> None:
    whole = '{"jsonrpc": "2.0",  "id": 7, "result": {"n": 1.0, "text": "\\u00e9"}}'
    data = whole.replace("u00e9", f"u00e9{LARGE}")
    _, body = await passed(START, event(data), END)
    assert body["body"] == data.encode()


@pytest.mark.parametrize(
    ("result", "way"),
    [
        ({"structuredContent": {"workflowId": "w", "r": LARGE}}, '{"workflow_id": "w"} returns it'),
        (
            {"resultType": "complete", "structuredContent": {"r": LARGE}},
            "what it did is done",
        ),
        ({"text": LARGE}, "what it did is done"),
    ],
)
async def test_a_large_answer_after_others_says_how_to_get_it(result: JsonObject, way: str) -> None:
    start, ping, told, end = await passed(START, PING, answer(result), END)
    assert (start, ping, end) == (START, PING, END)
    lines = told["body"].decode().splitlines()
    found = json.loads(lines[1].removeprefix("data: "))
    assert found["id"] == 7
    assert found["result"]["isError"] is True
    assert found["result"].get("resultType") == result.get("resultType")
    assert way in found["result"]["content"][0]["text"]


@pytest.mark.parametrize(
    "parts",
    [
        (START, answer({"text": "small"}), END),
        (START, END),
        (START, event(LARGE), END),
        (START, event(json.dumps({"method": "m", "params": LARGE})), END),
        ({**START, "headers": []}, {**END, "body": LARGE.encode() * 2}),
    ],
    ids=["a small answer", "no event", "no JSON", "no answer", "no stream"],
)
async def test_all_else_passes_as_it_is(parts: tuple[Message, ...]) -> None:
    assert await passed(*parts) == [*parts]


async def test_a_stream_begins_soon_though_nothing_is_answered() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async with large_answers(send, hold_s=0.0) as response:
        await response(START)
        await eventually(lambda: sent == [START])
        await response(answer({"text": LARGE}))
    assert "pml_get_task_result" not in str(sent[1]["body"])
    assert b"The call has ended" in sent[1]["body"]
