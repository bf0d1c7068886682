"""Previews of programs."""

from hypothesis import given
from hypothesis import strategies as st

from pml_registry.domain.previews import LONGEST, preview_of


def test_a_short_program_is_shown_whole() -> None:
    assert preview_of("\nreturn 1;\n") == "return 1;"
    assert preview_of("") == ""


def test_a_long_program_is_cut_between_lines() -> None:
    assert preview_of("const a = 1;\n" + "b" * 300) == "const a = 1;\n…"


def test_a_long_line_is_cut() -> None:
    assert preview_of("b" * 300) == "b" * 239 + "…"


@given(st.lists(st.text(max_size=120), max_size=12).map("\n".join))
def test_a_preview_is_bounded_and_the_beginning(code: str) -> None:
    preview = preview_of(code)
    assert len(preview) <= LONGEST
    shown = preview if preview == code.strip() else preview.removesuffix("…").rstrip()
    assert code.strip().startswith(shown)
