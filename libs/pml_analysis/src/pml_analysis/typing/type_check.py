"""Type check (A13): the module that a checker reads of a program, and its findings told in the
author's places."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pml_analysis.syntax.source import Source
from pml_analysis.text.problems import Problem, diagnostic
from pml_analysis.typing.declarations import DECLARED
from pml_common.contracts.structure import Diagnostic

_LONGEST_MESSAGE: Final = 600
_MOST_ERRORS: Final = 20
_IMPLICIT_ANY: Final = range(7005, 7060)
"""TypeScript's complaints about a type that is not written down. The option that allows these
would also make an empty list one of `never`."""


@dataclass(frozen=True)
class CheckedModule:
    """A program as a module; `prefix` UTF-16 units of its first line are not the author's."""

    text: str
    prefix: int


@dataclass(frozen=True)
class Finding:
    """What a checker says of a module: the line from 0, the column in UTF-16 units from 0."""

    line: int
    column: int
    code: int
    message: str


def checked_module(code: str, free: Sequence[str], declared: str) -> CheckedModule:
    """A program that the analysis let pass, as a module that imports what it finds from the
    module `declared` and leaves what the caller hands in, the names `free`, untyped.

    Its body stands in a block of its own, so that it may declare any name again.
    """
    parameters = ", ".join(f"{name}: any" for name in free)
    names = ", ".join(DECLARED)
    prefix = (
        f'import {{ {names} }} from "./{declared}"; export default async ({parameters}) => {{{{ '
    )
    return CheckedModule(f"{prefix}{code}\n}}}}", len(prefix.encode("utf-16-le")) // 2)


def type_errors(code: str, prefix: int, findings: Iterable[Finding]) -> list[Diagnostic]:
    """The findings that are about the program, in source order."""
    source = Source(code)
    problems: list[Problem] = []
    for finding in findings:
        column = finding.column - (prefix if finding.line == 0 else 0)
        if finding.code in _IMPLICIT_ANY or column < 0 or finding.line >= source.line_count:
            continue
        message = f"{finding.message[:_LONGEST_MESSAGE]} (TypeScript {finding.code})"
        problems.append(Problem(source.offset(finding.line + 1, column), message))
    ordered = sorted(problems, key=lambda problem: problem.offset)[:_MOST_ERRORS]
    return [diagnostic(source, problem) for problem in ordered]


def unchecked(why: str) -> Diagnostic:
    """What is told of a program whose types nobody looked at."""
    message = f"Types were not checked: {why}."
    return Diagnostic(severity="warning", message=message, line=1, column=1)
