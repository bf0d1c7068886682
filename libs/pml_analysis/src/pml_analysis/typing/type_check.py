"""Type check: the module that a checker reads for a program, and its findings at the author's
positions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pml_analysis.syntax.source import Source
from pml_analysis.text.problems import Problem, diagnostic
from pml_analysis.typing.declarations import DECLARED
from pml_common.contracts.structure import Diagnostic

_MAX_MESSAGE: Final = 600
_MAX_ERRORS: Final = 20
_IMPLICIT_ANY: Final = range(7005, 7060)
"""TypeScript's complaints about a missing type annotation. The option that allows these would also
make an empty list one of `never`."""


@dataclass(frozen=True)
class CheckedModule:
    """A program as a module; `prefix` UTF-16 units of its first line are not the author's."""

    text: str
    prefix: int


@dataclass(frozen=True)
class Finding:
    """A checker's finding in a module: the line from 0, the column in UTF-16 units from 0."""

    line: int
    column: int
    code: int
    message: str


def checked_module(code: str, free: Sequence[str], declared: str) -> CheckedModule:
    """Return a program that the analysis accepted, as a module that imports its globals from the
    module `declared` and leaves the caller's arguments, the names `free`, untyped.

    Its body is a block of its own, so that it may redeclare any name.
    """
    parameters = ", ".join(f"{name}: any" for name in free)
    names = ", ".join(DECLARED)
    prefix = (
        f'import {{ {names} }} from "./{declared}"; export default async ({parameters}) => {{{{ '
    )
    return CheckedModule(f"{prefix}{code}\n}}}}", len(prefix.encode("utf-16-le")) // 2)


def type_errors(code: str, prefix: int, findings: Iterable[Finding]) -> list[Diagnostic]:
    """Return the findings about the program itself, in source order."""
    source = Source(code)
    problems: list[Problem] = []
    for finding in findings:
        column = finding.column - (prefix if finding.line == 0 else 0)
        if finding.code in _IMPLICIT_ANY or column < 0 or finding.line >= source.line_count:
            continue
        message = f"{finding.message[:_MAX_MESSAGE]} (TypeScript {finding.code})"
        problems.append(Problem(source.offset(finding.line + 1, column), message))
    ordered = sorted(problems, key=lambda problem: problem.offset)[:_MAX_ERRORS]
    return [diagnostic(source, problem) for problem in ordered]


def unchecked(why: str) -> Diagnostic:
    """Return the warning for a program whose types were not checked."""
    message = f"Types were not checked: {why}."
    return Diagnostic(severity="warning", message=message, line=1, column=1)
