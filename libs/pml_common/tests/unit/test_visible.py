"""Control characters and invisible characters are escaped."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.text.confusables import read_as
from pml_common.text.visible import LAYOUT, visible

SHOWN = {
    "plain ASCII": ("a b\\c", "a b\\c"),
    "other scripts": ("żółć 文字 🙂", "żółć 文字 🙂"),
    "an escape": ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
    "a title": ("\x1b]0;pwned\x07", "\\x1b]0;pwned\\x07"),
    "a C1 control": ("a\x9b2Jb", "a\\x9b2Jb"),
    "a line turned round": ("/safe\u202egnp.", "/safe\\u202egnp."),
    "isolates and marks": ("\u2066\u2069\u200e\u061c", "\\u2066\\u2069\\u200e\\u061c"),
    "zero width": ("pass\u200bword\ufeff", "pass\\u200bword\\ufeff"),
    "a space that is none": ("a\u00a0b", "a\\xa0b"),
    "a letter without a shape": ("a\u3164\u115fb", "a\\u3164\\u115fb"),
    "a tag and a selector": ("\U000e0041\U000e0100", "\\u{e0041}\\u{e0100}"),
    "half a character": ("\ud800", "\\ud800"),
    "lines": ("a\r\n\tb", "a\\x0d\\x0a\\x09b"),
}


@pytest.mark.parametrize(("text", "shown"), SHOWN.values(), ids=SHOWN)
def test_invisible_characters_are_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_layout_characters_are_kept_on_request() -> None:
    assert visible("a\r\n\tb\x1b", LAYOUT) == "a\\x0d\n\tb\\x1b"


@given(st.text())
def test_escaped_text_is_visible_and_controls_no_terminal(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert visible(shown) == shown


@given(st.text(alphabet=st.characters(max_codepoint=0xFFFF, exclude_characters='"\\')))
def test_an_escaped_text_in_quotes_is_the_same_text(text: str) -> None:
    escaped = visible(text)
    for code in range(0x100):
        escaped = escaped.replace(f"\\x{code:02x}", f"\\u{code:04x}")
    assert json.loads(f'"{escaped}"') == text


@pytest.mark.parametrize(
    ("char", "letter"), [("\u0430", "a"), ("\uff41", "a"), ("a", "a"), ("\u6587", "\u6587")]
)
def test_a_confusable_character_maps_to_ascii(char: str, letter: str) -> None:
    assert read_as(char) == letter
