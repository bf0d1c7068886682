"""An analysis together with what a compiler told of the same program."""

from dataclasses import dataclass
from typing import Final

from pml_analysis.analysis import Rejection
from pml_analysis.syntax.source import Source
from pml_analysis.text.problems import Problem, diagnostic
from pml_common.contracts.structure import Diagnostic
from pml_common.text.visible import visible

_LONGEST: Final = 300


@dataclass(frozen=True)
class Misfit:
    """Why a program does not compile, in the compiler's words: the line from 1, or 0 where none is
    known, in it UTF-16 units from 0."""

    line: int
    units: int
    message: str


def uncompiled(code: str, misfit: Misfit) -> Rejection:
    """The rejection of a program that does not compile."""
    source = Source(code)
    line = min(max(misfit.line, 1), source.line_count)
    is_placed = misfit.line == line
    at = source.offset(line, misfit.units if is_placed else len(source.line(line)))
    message = f"The program does not compile: {_words(misfit)}."
    problem = Problem(at if misfit.line else 0, message)
    return Rejection((diagnostic(source, problem),), kind="syntax")


def uncompiled_capability(name: str, misfit: Misfit) -> Rejection:
    """The rejection of a program that reaches a capability that does not compile."""
    return _nowhere(f"It calls {name}, which does not compile: {_words(misfit)}.")


def uncompiled_instrumented(misfit: Misfit) -> Rejection:
    """The rejection of a program that compiles, though not as it would run."""
    return _nowhere(
        f"The program compiles, but not with the reports that the analysis puts in "
        f"(line {misfit.line}): {_words(misfit)}. This is an error of PML: please report it; "
        "writing that line in another way avoids it."
    )


def overdue(seconds: float) -> Rejection:
    """The rejection of a program that takes too long to be read."""
    return _nowhere(
        f"Reading the program took more than {seconds:g} s of processor time: make it simpler, "
        "or hand data in as args."
    )


def lost() -> Rejection:
    """The rejection of a program that ends the process that reads it, again and again."""
    return _nowhere("The program ended the process that read it, twice: make it simpler.")


def _words(misfit: Misfit) -> str:
    return misfit.message.strip().rstrip(".")[:_LONGEST]


def _nowhere(message: str) -> Rejection:
    told = Diagnostic(severity="error", message=visible(message), line=1, column=1)
    return Rejection((told,))
