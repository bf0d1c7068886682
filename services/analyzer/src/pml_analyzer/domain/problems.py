"""What is wrong with a program, before it has a line and a column."""

from dataclasses import dataclass

from pml_analyzer.syntax.source import Source
from pml_common.contracts.structure import Diagnostic

_LONGEST_LINE = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason to refuse the program, at an offset in code points."""

    offset: int
    message: str


def diagnostic(source: Source, problem: Problem) -> Diagnostic:
    """The problem with its place, as the author counts it, and its line."""
    line, column = source.position(problem.offset)
    return Diagnostic(
        severity="error",
        message=visible(problem.message),
        line=line,
        column=column,
        source_line=source.line(line)[:_LONGEST_LINE].encode(errors="replace").decode(),
    )


def visible(text: str) -> str:
    """A text with what prints nothing, turns the line round, or is half a character shown by
    number."""
    return text if text.isprintable() else "".join(map(_visible_character, text))


def _visible_character(char: str) -> str:
    return char if char.isprintable() else f"\\u{{{ord(char):x}}}"
