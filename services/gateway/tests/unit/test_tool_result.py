"""Conversion of results between MCP and programs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.tool_calls.tool_result import error_result, outcome_of, result_of

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ({"content": [_text("x")], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": [], "structuredContent": [1, 2]}, [1, 2]),
        ({"content": [], "structuredContent": False}, False),
        ({"content": [_text('{"a": 1}')]}, '{"a": 1}'),
        ({"content": [_text("")], "structuredContent": None}, ""),
        ({"content": [_text("x"), _text("y")]}, [_text("x"), _text("y")]),
        ({"content": [{"type": "image", "data": ""}]}, [{"type": "image", "data": ""}]),
        ({"content": []}, []),
        ({}, []),
    ],
)
def test_a_result_has_one_value(result: JsonObject, value: object) -> None:
    assert outcome_of({**result, "isError": False}) == ToolOutcome.model_validate(
        {"status": "ok", "result": value}
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([_text("no such file")], "no such file"),
        ([_text("one"), {"type": "image", "data": ""}, _text("two")], "one\ntwo"),
        ([], "the tool reported an error and gave no message"),
        (["?"], "the tool reported an error and gave no message"),
    ],
)
def test_an_error_is_its_text(content: Any, message: str) -> None:
    outcome = outcome_of({"content": content, "isError": True, "structuredContent": {"a": 1}})
    assert outcome == ToolOutcome(status="tool_error", message=message)


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
    assert result_of([{"type": "cat"}], structured=False)["content"] == [_text('[{"type": "cat"}]')]


def test_a_failure_goes_out_with_its_details() -> None:
    assert error_result("no") == {"content": [_text("no")], "isError": True}
    assert error_result("no", {"a": 1})["structuredContent"] == {"a": 1}


@given(JSON)
def test_a_value_that_goes_out_says_itself(value: Any) -> None:
    result = result_of(value, structured=True)
    back = outcome_of(result).result
    if isinstance(value, dict | str):
        assert back == value
    else:
        assert isinstance(back, str)
        assert json.loads(back) == value


@given(st.dictionaries(st.sampled_from(["content", "isError", "structuredContent"]), JSON))
def test_any_result_has_an_outcome(result: JsonObject) -> None:
    assert outcome_of(result).status in ("ok", "tool_error")
