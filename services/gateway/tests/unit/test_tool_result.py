"""Conversion of results between MCP and programs."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.tool_calls.exact_integers import inexact_integer, with_exact_integers
from pml_gateway.domain.tool_calls.tool_result import (
    answered_result,
    error_result,
    inputs_asked,
    not_a_result,
    outcome_of,
    result_of,
    with_blocks_taken_out,
)

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


IMAGE: JsonObject = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
SOUND: JsonObject = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
FILE: JsonObject = {"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}}
PAGE: JsonObject = {"type": "resource", "resource": {"uri": "file:///b", "text": "hi"}}
LINK: JsonObject = {"type": "resource_link", "uri": "file:///a", "name": "a"}
WITH_IMAGE: JsonObject = {"a": 1, "_content": [_text("a cat"), IMAGE]}
ONLY_IMAGE: JsonObject = {"a": 1, "_content": [IMAGE]}
WHOLE: JsonObject = {"content": [IMAGE], "structuredContent": [1]}
TAKEN: JsonObject = {"content": [IMAGE], "structuredContent": {"_content": 1}}


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ({"content": [_text("x")], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": [], "structuredContent": [1, 2]}, [1, 2]),
        ({"content": [], "structuredContent": False}, False),
        ({"content": [_text('{"a": 1}')]}, '{"a": 1}'),
        ({"content": [_text("")], "structuredContent": None}, ""),
        ({"content": [_text("a cat"), IMAGE], "structuredContent": {"a": 1}}, WITH_IMAGE),
        ({"content": [_text('{"a": 1}'), IMAGE], "structuredContent": {"a": 1}}, ONLY_IMAGE),
        ({"content": [IMAGE], "structuredContent": [1]}, WHOLE),
        ({"content": [IMAGE], "structuredContent": {"_content": 1}}, TAKEN),
        (
            {"content": [], "structuredContent": {"id": 2**53, "not": [-(2**60), 2**53 - 1, True]}},
            {"id": str(2**53), "not": [str(-(2**60)), 2**53 - 1, True]},
        ),
        ({"content": [_text("x"), _text("y")]}, [_text("x"), _text("y")]),
        ({"content": [{"type": "image", "data": ""}]}, [{"type": "image", "data": ""}]),
        ({"content": []}, None),
        ({}, None),
    ],
)
def test_a_result_has_one_value(result: JsonObject, value: object) -> None:
    assert outcome_of({**result, "isError": False}).plain == ToolOutcome.model_validate(
        {"status": "ok", "result": value}
    )


@pytest.mark.parametrize(
    ("content", "structured", "message"),
    [
        ([_text("no such file")], None, "no such file"),
        ([_text("one"), {"type": "image", "data": ""}, _text("two")], None, "one\ntwo"),
        ([], None, "the tool reported an error and gave no message"),
        (["?"], None, "the tool reported an error and gave no message"),
        ([_text("no such file")], {"code": 2}, 'no such file\n{"code": 2}'),
        ([_text('{"code":2}')], {"code": 2}, '{"code":2}'),
        ([], {"code": 2}, '{"code": 2}'),
    ],
)
def test_an_error_is_its_text_and_its_details(content: Any, structured: Any, message: str) -> None:
    answer = {"content": content, "isError": True, "structuredContent": structured}
    outcome = outcome_of(answer)
    assert outcome.plain == ToolOutcome(status="tool_error", message=message)
    assert outcome.answer == answer


@pytest.mark.parametrize("value", [WITH_IMAGE, ONLY_IMAGE, WHOLE, TAKEN, [_text("a"), LINK, PAGE]])
def test_blocks_come_back_from_the_value_of_a_program(value: Any) -> None:
    back = outcome_of(result_of(value, structured=True))
    if value is WHOLE:  # a list goes out as text, which comes back as a caption
        assert back.result == [_text("[1]"), IMAGE]
    else:
        assert back.result == value


@pytest.mark.parametrize("value", [{"_content": []}, {"_content": [5]}, {"_content": "x", "a": 1}])
def test_a_field_of_that_name_with_something_else_stays(value: Any) -> None:
    assert result_of(value, structured=True)["structuredContent"] == value


def test_an_answer_goes_out_as_it_came() -> None:
    said = _text("It is 5 degrees")
    answer: JsonObject = {"content": [said, IMAGE], "structuredContent": {"t": 2**60}}
    assert answered_result(answer) == {**answer, "isError": False}
    error: JsonObject = {"content": [said], "structuredContent": {"code": 2}, "isError": True}
    assert answered_result(error) == error
    assert answered_result({"content": []}) == {"content": [], "isError": False}
    bare: JsonObject = {"content": [], "structuredContent": {"t": 5}}
    assert answered_result(bare)["content"] == [_text('{"t": 5}')]
    listed: JsonObject = {"content": [], "structuredContent": [5]}
    assert answered_result(listed) == {"content": [_text("[5]")], "isError": False}


def test_data_in_a_value_is_taken_out_wherever_it_is() -> None:
    taken: list[Any] = []
    value: Any = {
        "shots": [IMAGE, {"of": SOUND}],
        "n": 1,
        "file": FILE,
        "page": PAGE,
        "odd": [LINK],
    }
    assert with_blocks_taken_out(value, taken) == {
        "shots": [
            {"type": "image", "content_block": 1, "mimeType": "image/png"},
            {"of": {"type": "audio", "content_block": 2, "mimeType": "audio/wav"}},
        ],
        "n": 1,
        "file": {"type": "resource", "content_block": 3},
        "page": {"type": "resource", "content_block": 4},
        "odd": [LINK],
    }
    assert taken == [IMAGE, SOUND, FILE, PAGE]


def test_an_object_goes_out_structured_where_that_is_promised() -> None:
    assert result_of({"a": "é"}, structured=True) == {
        "content": [_text('{"a": "é"}')],
        "structuredContent": {"a": "é"},
        "isError": False,
    }
    assert "structuredContent" not in result_of({"a": 1}, structured=False)
    assert "structuredContent" not in result_of([1], structured=True)


def test_blocks_go_out_as_they_came() -> None:
    blocks: list[Any] = [_text("one"), {"type": "image", "data": "", "mimeType": "image/png"}]
    assert result_of(blocks, structured=False)["content"] == blocks
    others: list[Any] = [{"type": "cat"}, {"type": "image", "data": ""}, {"type": "text"}, 5]
    for no_block in others:
        content = result_of([no_block], structured=False)["content"]
        assert content == [_text(json.dumps([no_block]))]
    assert result_of(None, structured=True) == {"content": [], "isError": False}


def test_a_failure_goes_out_with_its_details() -> None:
    assert error_result("no") == {"content": [_text("no")], "isError": True}
    assert error_result("no", {"a": 1})["structuredContent"] == {"a": 1}


@given(JSON)
def test_a_value_that_goes_out_says_itself(value: Any) -> None:
    result = result_of(value, structured=True)
    back = outcome_of(result).result
    if isinstance(value, dict | str):
        assert back == with_exact_integers(cast(JsonValue, value))
    elif value is None:
        assert back is None
    else:
        assert isinstance(back, str)
        assert json.loads(back) == value


@given(st.dictionaries(st.sampled_from(["content", "isError", "structuredContent"]), JSON))
def test_any_result_has_an_outcome(result: JsonObject) -> None:
    assert outcome_of(result).status in ("ok", "tool_error")


def test_the_first_integer_that_is_not_exact_is_found() -> None:
    assert inexact_integer({"a": [1, {"b": 2**53}], "c": 2**60}) == ("a.1.b", 2**53)
    assert inexact_integer({"a": [True, 2**53 - 1, 1e300, "x", None]}) is None


def test_the_meta_of_an_answer_is_passed_on_but_for_the_protocols_own() -> None:
    meta: JsonObject = {"a.org/b": 1, "io.modelcontextprotocol/serverInfo": {"name": "fs"}}
    assert answered_result({"content": [], "_meta": meta})["_meta"] == {"a.org/b": 1}
    assert "_meta" not in answered_result({"content": [], "_meta": {"pml/x": 1}})


def test_what_a_server_asks_for_in_place_of_a_result_is_an_error_that_says_so() -> None:
    asked: JsonObject = {"resultType": "input_required", "inputRequests": {"who": {}, "why": {}}}
    assert outcome_of(asked).message == "the server asks for input: who, why"
    stated: JsonObject = {"resultType": "input_required", "requestState": "begun"}
    assert outcome_of(stated).message == "the server asks for input: its state"
    refused: JsonObject = {"error": {"code": -32021, "message": "sampling is required"}}
    outcome = outcome_of(refused)
    assert (outcome.status, outcome.message) == ("tool_error", "sampling is required")
    assert outcome.answer == refused
    assert not_a_result(refused)
    assert inputs_asked(outcome_of(asked)) == ({"who": {}, "why": {}}, None)
    assert inputs_asked(outcome_of(stated)) == ({}, "begun")
    assert inputs_asked(outcome_of(refused)) is None
    assert inputs_asked(outcome_of(asked).plain) is None
    assert not not_a_result({"content": []})
