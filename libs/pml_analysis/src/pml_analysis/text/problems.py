"""Problems of a program, before they have a line and a column."""

from dataclasses import dataclass
from typing import Literal

from pml_analysis.syntax.source import Source
from pml_common.contracts.structure import Diagnostic
from pml_common.text.visible import visible

_SHOWN = 200
"""Characters of a line that are shown at least; of a long one, half as many on each side."""

_MAX_LINE = 2_000


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason to refuse the program, at an offset in code points."""

    offset: int
    message: str


def diagnostic(
    source: Source, problem: Problem, severity: Literal["error", "warning"] = "error"
) -> Diagnostic:
    """Return the problem with its place, as the author counts it, and its line."""
    line, column = source.position(problem.offset)
    return Diagnostic(
        severity=severity,
        message=visible(problem.message),
        line=line,
        column=column,
        source_line=_excerpt(source.line(line), column).encode(errors="replace").decode(),
    )


def _excerpt(line: str, column: int) -> str:
    """Return a line up to a little beyond a column; of a very long one the surroundings, after
    `…`."""
    beside = _SHOWN // 2
    if column <= _MAX_LINE:
        return line[: max(_SHOWN, column + beside)]
    return f"…{line[column - beside : column + beside]}"
