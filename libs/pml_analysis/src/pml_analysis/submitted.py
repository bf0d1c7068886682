"""Programs as clients send them: the text that is analysed, and its model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Tree as RawTree

from pml_analysis.names.foreign_calls import foreign_calls
from pml_analysis.names.renaming import notice
from pml_analysis.names.respelt import respelt
from pml_analysis.names.spellings import Spellings
from pml_analysis.running.completion import completed
from pml_analysis.semantic_model import SemanticModel, build_model
from pml_analysis.syntax.edits import Edited, composed
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
    """The model of a program, what was changed in its text, and whether names of tools were."""

    model: SemanticModel
    notices: tuple[str, ...]
    is_renamed: bool = False


def read_program(
    code: str, limits: Limits, spellings: Spellings, *, submitted: bool
) -> ReadProgram:
    """Parse a program; of one that a client `submitted`, take off the fence, replace the names of
    other hosts, and complete it. Raises Unreadable, TooDeep, TooManyNodes."""
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
    if not submitted:
        return ReadProgram(model, notices)
    model, told = _renamed(model, limits, spellings)
    whole = completed(model.tree, model.scopes, model.calls, model.promises)
    if whole is None:
        return ReadProgram(model, (*notices, *told), bool(told))
    model = _rebuilt(model, whole.edited, limits)
    return ReadProgram(model, (*notices, *told, whole.notice), bool(told))


def _renamed(
    model: SemanticModel, limits: Limits, spellings: Spellings
) -> tuple[SemanticModel, tuple[str, ...]]:
    """Replace the names of other hosts; return the notice, too."""
    calls = foreign_calls(model.tree, model.scopes, model.origins, spellings)
    if calls is not None:
        model = _rebuilt(model, calls.edited, limits)
    parts = respelt(model.tree, model.origins, spellings)
    if parts is not None:
        model = _rebuilt(model, parts.edited, limits)
    names = [name for each in (calls, parts) if each is not None for name in each.names]
    return model, (notice(names),) if names else ()


def _rebuilt(model: SemanticModel, edited: Edited, limits: Limits) -> SemanticModel:
    """Build the model of an edited program, with the author's positions."""
    before = model.tree.source
    text, inserted = composed(edited, before.inserted)
    source = Source(text, inserted, before.authors)
    return build_model(view(parse(source), source, nesting=limits.nesting), limits)


def _parsed(source: Source) -> RawTree:
    try:
        return parse(source)
    except TooBroken as error:
        raise Unreadable(source, [Problem(error.offset, TOO_BROKEN)], "syntax") from None
