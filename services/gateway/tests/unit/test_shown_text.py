"""Values as shown to an approver."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pml_common.binding.canonical import sha256_of
from pml_gateway.domain.api.shown_text import LONGEST, Texts, digest_of, json_text, marks_of

UPWARDS, ABSOLUTE = "leads upwards (..)", "absolute path"
HONEST = [
    "notes/monday.md",
    "a..b",
    "...",
    "",
    None,
    7,
    {"path": ["x", True]},
    "привет мир",
    "don\u2019t \u2013 really",
    "naïve café",
    "文字",
    "first\nsecond\tthird",
]
MARKED = {
    "upwards": ("../x", [UPWARDS]),
    "upwards within": ("a/../../b", [UPWARDS]),
    "upwards on Windows": ("a\\..", [UPWARDS]),
    "absolute": ("/etc/passwd", [ABSOLUTE]),
    "both": ("/a/..", [UPWARDS, ABSOLUTE]),
    "home": ("~/.ssh/id", [ABSOLUTE]),
    "a drive": ("C:\\x", [ABSOLUTE]),
    "a file": ("FILE:///x", [ABSOLUTE]),
    "in a list": ([{"deep": "../x"}, "/x"], [UPWARDS, ABSOLUTE]),
    "a key": ({"/x": 1}, [ABSOLUTE]),
    "turned": ("safe\u202egnp", ["changes the direction of text (\\u202e)"]),
    "hidden": ("pass\u200bword", ["has characters that nobody sees (\\u200b)"]),
    "a control": ("a\x1b[2J", ["has characters that nobody sees (\\x1b)"]),
    "one letter": (
        "p\u0430ypal",
        ["reads like other characters (\u0430, U+0430, is not a)"],
    ),
    "every letter": (
        "\u0441\u043e\u0440\u0443",
        ["reads like other characters (\u0441, U+0441, is not c)"],
    ),
    "a slash": ("a\u2215b", ["reads like other characters (\u2215, U+2215, is not /)"]),
    "full width": ("\uff0e\uff0e", ["reads like other characters (\uff0e, U+FF0E, is not .)"]),
}


@pytest.mark.parametrize("value", HONEST, ids=str)
def test_an_honest_value_has_no_marks(value: JsonValue) -> None:
    assert marks_of(value) == ()


@pytest.mark.parametrize(("value", "marks"), MARKED.values(), ids=MARKED)
def test_what_may_mislead_is_marked(value: JsonValue, marks: list[str]) -> None:
    assert list(marks_of(value)) == marks


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_a_text_is_json_of_the_value_and_visible(value: JsonValue) -> None:
    text = json_text(value)
    assert json.loads(text) == value
    assert text.isprintable()


def test_a_long_text_is_cut_in_the_middle_and_says_so() -> None:
    value = "/home/" + "x" * 12_337 + "/x"
    text, cut, marks = Texts().of_value(value)
    assert text.startswith('"/home/xxx')
    assert text.endswith('xxx/x"')
    assert f"xxx…(12,347 characters, sha256 {sha256_of(value)[:8]}…)…xxx" in text
    assert len(text) <= LONGEST + 50
    assert cut is not None
    assert (cut.length, cut.sha256) == (12_347, sha256_of(value))
    assert marks == (ABSOLUTE,)


def test_it_is_whole_where_there_is_room_and_what_is_given_twice_is_read_once() -> None:
    texts, value = Texts(room=500), "x" * 300
    assert texts.of_value(value).text == f'"{value}"'
    assert texts.of_value(value).cut is not None, "the room is used up"
    assert Texts().of_value("x" * (LONGEST - 2)).cut is None


def test_an_expression_is_shown_as_it_stands() -> None:
    assert Texts().of_expression("a\u202e + b").text == "a\\u202e + b"
    assert Texts().of_expression("x" * 300).cut is not None
    assert Texts(room=300).of_expression("x" * 300).cut is None


def test_half_a_character_has_a_digest_too() -> None:
    assert digest_of("\ud800") != digest_of("\ud801")
