"""Programs as clients send them: the text that is analysed, and its model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Tree as RawTree

from pml_analysis.running.completion import completed
from pml_analysis.semantic_model import SemanticModel, build_model
from pml_analysis.syntax.parser import TooBroken, parse, view
from pml_analysis.syntax.source import Source
from pml_analysis.text.fences import unfenced
from pml_analysis.text.limits import TOO_BROKEN, Limits, too_long, unreadable
from pml_analysis.text.problems import Problem
from pml_analysis.text.syntax_errors import syntax_errors


class Unreadable(Exception):
    """A text is no program that can be analysed."""

    def __init__(
        self,
        source: Source,
        problems: Sequence[Problem],
        kind: Literal["syntax", "rejected"] = "rejected",
    ) -> None:
        super().__init__(problems[0].message)
        self.source = source
        self.problems = problems
        self.kind: Literal["syntax", "rejected"] = kind


@dataclass(frozen=True)
class ReadProgram:
    """The model of a program, and what was changed in its text."""

    model: SemanticModel
    notices: tuple[str, ...]


def read_program(code: str, limits: Limits, *, submitted: bool) -> ReadProgram:
    """Parse a program; of one that a client `submitted`, take off the fence, and complete it.
    Raises Unreadable, TooDeep, TooManyNodes."""
    source, notices = Source(code), ()
    problems = unreadable(code, limits)
    if problems:
        raise Unreadable(source, problems)
    raw = _parsed(source)
    unwrapped = unfenced(source, raw) if submitted else None
    if isinstance(unwrapped, Problem):
        raise Unreadable(source, [unwrapped], "syntax")
    if unwrapped is not None:
        source, notices = Source(unwrapped.text), (unwrapped.notice,)
        raw = _parsed(source)
    if raw.root_node.has_error:
        raise Unreadable(source, syntax_errors(raw, source), "syntax")
    problems = too_long(raw, limits)
    if problems:
        raise Unreadable(source, problems)
    model = build_model(view(raw, source, nesting=limits.nesting), limits)
    whole = completed(model.tree, model.scopes, model.calls, model.promises) if submitted else None
    if whole is None:
        return ReadProgram(model, notices)
    source = Source(*whole.edited)
    tree = view(parse(source), source, nesting=limits.nesting)
    return ReadProgram(build_model(tree, limits), (*notices, whole.notice))


def _parsed(source: Source) -> RawTree:
    try:
        return parse(source)
    except TooBroken as error:
        raise Unreadable(source, [Problem(error.offset, TOO_BROKEN)], "syntax") from None
