"""Foreign names, values and comments in TypeScript."""

import pytest
from pydantic import JsonValue

from pml_analysis.typing.type_text import (
    block,
    comment,
    indented,
    key,
    literal,
    pascal,
    unique,
)
from services.analyzer.tests.support.schemas import HOSTILE_TEXTS

SPEAKING = {name: text for name, text in HOSTILE_TEXTS.items() if name != "empty"}


@pytest.mark.parametrize("text", SPEAKING.values(), ids=SPEAKING)
def test_a_comment_ends_where_it_should_and_directs_nobody(text: str) -> None:
    found = comment(text)
    assert found.count("*/") == len(found.splitlines()) - found.count("\n *") == 1
    assert found.endswith("*/\n")
    assert "@" not in found.replace("\\@", "")
    assert all(line.isprintable() for line in found.splitlines())
    assert found.encode()  # no half characters


def test_a_comment_is_one_line_where_it_can_be() -> None:
    assert comment("Reads a file.\n  Fast.") == "/** Reads a file. Fast. */\n"
    assert comment("mail me@example.com") == "/** mail me@example.com */\n"
    assert comment(" \n\0") == ""


def test_a_long_comment_is_wrapped_and_cut() -> None:
    found = comment("word " * 500)
    assert found.startswith("/**\n * word word")
    assert found.endswith("…\n */\n")
    assert max(map(len, found.splitlines())) <= 100


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a", "a"), ("$_1", "$_1"), ("1a", '"1a"'), ("é", '"é"'), ("", '""'), ("\u2028", r'"\u2028"')],
)
def test_a_member_is_quoted_where_it_is_no_identifier(name: str, expected: str) -> None:
    assert key(name) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("\ud800", r'"\ud800"'),
        ("\n", r'"\n"'),
        (True, "true"),
        (None, "null"),
        (-3, "-3"),
        (float("nan"), "number"),
        (float("inf"), "number"),
        ([1], None),
        ({}, None),
    ],
)
def test_a_value_becomes_the_type_that_only_it_has(value: JsonValue, expected: str | None) -> None:
    assert literal(value) == expected


def test_words_become_one_name() -> None:
    assert pascal("my-server", "read_file v2", "名") == "MyServerReadFileV2"


def test_a_taken_name_gets_a_number() -> None:
    assert unique("A", ()) == "A"
    assert unique("A", ("A", "A2")) == "A3"


def test_a_block_stands_on_one_line_while_it_is_short() -> None:
    assert block([]) == "{}"
    assert block(["a: 1", "b: 2"]) == "{ a: 1; b: 2 }"
    assert block(["a: {\n  b: 1;\n}"]) == "{\n  a: {\n    b: 1;\n  };\n}"
    assert indented("a\n\nb") == "  a\n\n  b"
