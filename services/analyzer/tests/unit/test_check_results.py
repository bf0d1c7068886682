"""Rejections of programs that do not compile, and of those that cannot be analysed in time."""

import pytest

from pml_analysis.analysis import Rejection
from pml_analysis.check_results import (
    CompileError,
    capability_does_not_compile,
    does_not_compile,
    ended_the_process,
    instrumented_does_not_compile,
    took_too_long,
)
from pml_analysis.syntax.source import Source

CODE = "let a = 1;\nlet \U0001f600 = 'é'; let a = 2;\nreturn a;"
WHY = "Identifier 'a' has already been declared"


def place(rejection: Rejection) -> tuple[int, int, str]:
    (told,) = rejection.diagnostics
    assert told.severity == "error"
    return told.line, told.column, told.message


def test_a_misfit_is_told_at_its_place_in_characters() -> None:
    rejection = does_not_compile(Source(CODE), CompileError(2, 18, WHY))
    assert rejection.kind == "syntax"
    assert place(rejection) == (2, 18, f"The program does not compile: {WHY}.")
    assert rejection.diagnostics[0].source_line == CODE.splitlines()[1]


@pytest.mark.parametrize(
    ("compile_error", "line", "column"),
    [
        (CompileError(0, 0, "gave up."), 1, 1),
        (CompileError(4, 2, WHY), 3, 10),
        (CompileError(2, 999, WHY), 2, 24),
    ],
    ids=["no place", "after the end", "beyond a line"],
)
def test_a_misfit_elsewhere_is_told_where_the_program_is(
    compile_error: CompileError, line: int, column: int
) -> None:
    assert place(does_not_compile(Source(CODE), compile_error))[:2] == (line, column)


def test_what_a_compiler_quotes_is_shown_and_not_written() -> None:
    *_, message = place(does_not_compile(Source(CODE), CompileError(1, 0, "Invalid /\x1b[2J/")))
    assert "\x1b" not in message
    assert "\x1b" not in place(capability_does_not_compile("x", CompileError(1, 0, "\x1b[2J")))[2]


def test_each_other_rejection_says_what_to_do() -> None:
    assert (
        "calls fs:read_json, which does not compile: no."
        in place(capability_does_not_compile("fs:read_json", CompileError(1, 0, "no.")))[2]
    )
    assert "line 7" in place(instrumented_does_not_compile(CompileError(7, 0, "no")))[2]
    assert "2 s of processor time: make it simpler" in place(took_too_long(2.0))[2]
    assert "make it simpler" in place(ended_the_process())[2]
