"""Outcomes of analyses, combined with those of the compiler and the type checker."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.syntax.source import Position, Source
from pml_analysis.text.problems import Problem, diagnostic
from pml_common.contracts.structure import Diagnostic
from pml_common.text.visible import visible

_MAX_LENGTH: Final = 300
_MAX_UNITS: Final = 2**20
"""Beyond the end of every line."""


@dataclass(frozen=True)
class CompileError:
    """A compiler's message, in its own words: the line from 1, or 0 where it is unknown, in it
    UTF-16 units from 0."""

    line: int
    units: int
    message: str


def does_not_compile(source: Source, error: CompileError) -> Rejection:
    """Reject a program that does not compile."""
    line = min(max(error.line, 1), source.line_count)
    is_placed = error.line == line
    at = source.offset(line, error.units if is_placed else _MAX_UNITS)
    message = f"The program does not compile: {_message(error)}."
    problem = Problem(at if error.line else 0, message)
    return Rejection((diagnostic(source, problem),), kind="syntax")


def capability_does_not_compile(name: str, error: CompileError) -> Rejection:
    """Reject a program that reaches a capability that does not compile."""
    return _unplaced(f"It calls {name}, which does not compile: {_message(error)}.")


def instrumented_does_not_compile(error: CompileError) -> Rejection:
    """Reject a program that compiles, but not in its instrumented form."""
    return _unplaced(
        f"The program compiles, but not with the reports that the analysis puts in "
        f"(line {error.line}): {_message(error)}. This is an error of PML: please report it; "
        "writing that line in another way avoids it."
    )


def took_too_long(seconds: float) -> Rejection:
    """Reject a program whose analysis takes too long."""
    return _unplaced(
        f"Reading the program took more than {seconds:g} s of processor time: make it simpler, "
        "or pass data as args."
    )


def ended_the_process() -> Rejection:
    """Reject a program that repeatedly crashes the process that analyses it."""
    return _unplaced("The program ended the process that read it, twice: make it simpler.")


def with_types(
    analysis: Analysis, found: Sequence[Diagnostic], *, reject: bool
) -> Analysis | Rejection:
    """Add the type errors to an analysis, at positions in its `code`: a rejection if there are
    errors and `reject`, else the same with warnings."""
    source = analysis.source
    if source.inserted:
        found = [_authors(source, each) for each in found]
    errors = tuple(each for each in found if each.severity == "error")
    if reject and errors:
        return Rejection(errors)
    warnings = (each.model_copy(update={"severity": "warning"}) for each in found)
    return replace(analysis, diagnostics=(*analysis.diagnostics, *warnings))


def _authors(source: Source, found: Diagnostic) -> Diagnostic:
    """Return a diagnostic at its position in the author's text."""
    at = source.at(Position(found.line, found.column))
    return diagnostic(source, Problem(at, found.message), found.severity)


def _message(error: CompileError) -> str:
    return error.message.strip().rstrip(".")[:_MAX_LENGTH]


def _unplaced(message: str) -> Rejection:
    found = Diagnostic(severity="error", message=visible(message), line=1, column=1)
    return Rejection((found,))
