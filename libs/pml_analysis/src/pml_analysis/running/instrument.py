"""Instrumentation pass: the author's text, with node ids at calls and outcomes at decisions.

Nothing is removed and no line is added, so that lines in errors stay the author's. A program can
detect it only by the text of its own functions (`f.toString()`).
"""

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final

from pml_analysis.names.callbacks import given_function
from pml_analysis.names.choices import case_outcome, condition_of
from pml_analysis.names.origins import BOUND_ROOTS
from pml_analysis.running.entry_ids import EntryIds
from pml_analysis.running.returned_parts import ReturnedPart
from pml_analysis.structure.calls import Calls, CallSite
from pml_analysis.structure.expansion import Expansion
from pml_analysis.structure.marks import Mark
from pml_analysis.structure.units import Unit
from pml_analysis.syntax.edits import Edited, Wrap, apply
from pml_analysis.syntax.node_kinds import INLINE_FUNCTIONS
from pml_analysis.syntax.tree import Node, Tree

_TO_COLON: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*:", re.DOTALL)
_SPACES: Final = re.compile(r"\s+")
_GIVEN: Final = "__pml_given"
_RETURNED: Final = "__pml_returned"
RETURNING: Final = f"const {_RETURNED} = __pml.returned ?? ((...given) => given[5]); "
"""Declares the report of a missing part, which older sandboxes do not have."""
_MAX_TOLD: Final = 100
_MAX_INSPECTED: Final = 10 * _MAX_TOLD


def instrument(
    tree: Tree, calls: Calls, expansion: Expansion, bindings: str, others: Iterable[Wrap] = ()
) -> Edited:
    """Build the program that runs; `bindings` come before it, on its first line; `others` are edits
    beside those for its nodes."""
    entry_ids = EntryIds(expansion)
    sites = {site.call.index: site for site in calls.sites}
    units = {mark.unit for marks in expansion.marks.values() for mark in marks if mark.unit}
    writer = _Writer(tree, entry_ids, sites, {unit.function.index for unit in units})
    wraps: list[Wrap] = []
    for function, marks in expansion.marks.items():
        for mark in marks:
            wraps += writer.mark(mark, function)
    for unit in sorted(units, key=lambda unit: unit.function.index):
        wraps += writer.body(unit)
    wraps += others
    return apply(tree.source.text, wraps, first=bindings + entry_ids.table())


def prologue(free: Sequence[str], spoken: Sequence[str], arguments: str) -> str:
    """Build the bindings, on the author's first line, of the names that the caller's arguments are
    read by."""
    whole = "".join(f"const {name} = {arguments}; " for name in spoken)
    parts = f"const {{ {', '.join(free)} }} = {arguments}; " if free else ""
    return parts + whole


def arguments_name(top: Container[str]) -> str | None:
    """Return a name for the caller's arguments that the author's own declarations do not shadow."""
    return next((name for name in BOUND_ROOTS if name not in top), None)


class _Writer:
    def __init__(
        self, tree: Tree, entry_ids: EntryIds, sites: Mapping[int, CallSite], named: Container[int]
    ) -> None:
        self._tree = tree
        self._entry_ids = entry_ids
        self._sites = sites
        self._named = named
        """Functions with more than one possible caller, by index."""

    def mark(self, mark: Mark, function: int | None) -> Iterator[Wrap]:
        """Return the edits for one mark of a function."""
        match mark.kind:
            case "call":
                yield from self._call(
                    self._sites[mark.node.index], self._entry_ids.node(mark, function)
                )
            case "decision":
                yield from self._DECISIONS[mark.node.kind](
                    self, mark.node, self._entry_ids.node(mark, function)
                )
            case "loop":
                yield self._loop(mark.node, self._entry_ids.node(mark, function))
            case "entry":
                entering = self._entry_ids.entering(mark, function)
                if entering is not None:
                    row, key = entering
                    is_call = mark.node.kind == "call_expression"
                    callee = mark.node["function"] if is_call else mark.node
                    yield _round(callee, f'__pml.via({row}, "{key}", ', ")")
            case _:
                pass

    def body(self, unit: Unit) -> Iterator[Wrap]:
        """Return the text at the beginning of a local function's body."""
        entry, loop = self._entry_ids.entry(unit), self._entry_ids.recursion(unit.function.index)
        first = ""
        if entry is not None:
            name, key, otherwise = entry
            first = f'const {name} = __pml.entered("{key}", {otherwise}); '
        if loop is not None:
            first += f"{loop} && __pml.round({loop}); " if entry else f"__pml.round({loop}); "
        if first:
            yield _at_start(unit.function["body"], first)

    def _call(self, site: CallSite, node_id: str) -> Iterator[Wrap]:
        """Rewrite `E(…)` → `__pml.at("n1", E)(…)`.

        A callee that an optional chain may leave undefined stays so: `a?.b(…)` → `__pml.at("n1",
        a?.b)?.(…)`.
        """
        callee, text = site.callee, self._tree.source.text
        yield _round(callee, f"__pml.at({node_id}, ", ")")
        optional = any(node.kind == "optional_chain" for node in self._tree.subtree(callee))
        if optional and callee.kind != "parenthesized_expression":
            follows = site.call.child("type_arguments") or site.call["arguments"]
            if text[callee.end : follows.start].strip() == "":
                yield Wrap(follows.start, follows.start, "?.")

    def _condition(self, node: Node, node_id: str) -> Iterator[Wrap]:
        """Rewrite `if (C)` → `if (__pml.decide("d1", C))`, and the condition of `C ? a : b`
        likewise."""
        yield _as_last_argument(condition_of(node), f"__pml.decide({node_id}, ")

    def _short_circuit(self, node: Node, node_id: str) -> Iterator[Wrap]:
        yield _as_last_argument(node["left"], f"__pml.{_report_of(node)}({node_id}, ")

    def _assignment(self, node: Node, node_id: str) -> Iterator[Wrap]:
        """Rewrite `a ||= B` → `__pml.last(__pml.decide("d1", a), a ||= B)`."""
        left = self._plain_text(node["left"])
        yield _round(node, f"__pml.last(__pml.{_report_of(node)}({node_id}, {left}), ", ")")

    def _plain_text(self, node: Node) -> str:
        """Return a name and its members, on one line."""
        names: list[str] = []
        node = node.inner
        while node.kind == "member_expression":
            names.append(self._tree.text(node["property"]))
            node = node["object"].inner
        return ".".join([self._tree.text(node), *reversed(names)])

    def _switch(self, node: Node, node_id: str) -> Iterator[Wrap]:
        yield _as_last_argument(node["value"].children[0], f"__pml.subject({node_id}, ")
        clauses = node["body"].children
        for clause in clauses:
            value = clause.child("value")
            after = clause.start + len("default") if value is None else value.end
            colon = next(_TO_COLON.finditer(self._tree.source.text, after))
            outcome = json.dumps(case_outcome(self._tree, clause))
            yield Wrap(colon.end(), colon.end(), f" __pml.chosen({node_id}, {outcome});")
        if not any(clause.kind == "switch_default" for clause in clauses):
            end = node["body"].end - 1
            apart = "; " if clauses else " "
            yield Wrap(end, end, f'{apart}default: __pml.chosen({node_id}, "default"); ')

    def _try(self, node: Node, node_id: str) -> Iterator[Wrap]:
        end = node["body"].end - 1
        yield Wrap(end, end, f'; __pml.took({node_id}, "ok"); ')
        yield _at_start(node["handler"]["body"], f'__pml.took({node_id}, "error"); ')

    def _loop(self, node: Node, node_id: str) -> Wrap:
        """Put a report at the beginning of each round; a callback with other possible callers is
        wrapped in one that reports, `f` → `function (...given) { return (report, f).apply(this,
        given); }`."""
        if node.kind != "call_expression":
            return _at_start(node["body"], f"__pml.round({node_id}); ", is_statement=True)
        function = given_function(self._tree, node) or node
        if function.inner.kind in INLINE_FUNCTIONS and function.inner.index not in self._named:
            return _at_start(function.inner["body"], f"__pml.round({node_id}); ")
        before = f"function (...{_GIVEN}) {{ return (__pml.round({node_id}), "
        return _round(function, before, f").apply(this, {_GIVEN}); }}")

    _DECISIONS: ClassVar[dict[str, Callable[["_Writer", Node, str], Iterator[Wrap]]]] = {
        "augmented_assignment_expression": _assignment,
        "binary_expression": _short_circuit,
        "if_statement": _condition,
        "switch_statement": _switch,
        "ternary_expression": _condition,
        "try_statement": _try,
    }


def dropped_reports(tree: Tree, dropped: Iterable[Node]) -> list[Wrap]:
    """Return the edits at expressions with promises that nothing waits for."""
    return [_dropped(tree, node) for node in {each.index: each for each in dropped}.values()]


def _dropped(tree: Tree, node: Node) -> Wrap:
    """Rewrite `f()` → `__pml.dropped(9, 1, f())`, with line and column of the author's."""
    line, column = tree.source.position(node.start)
    return _round(node, f"__pml.dropped({line}, {column}, ", ")")


def missing_reports(tree: Tree, returned: Iterable[ReturnedPart]) -> list[Wrap]:
    """Return the edits at expressions that give the program its value and may be undefined."""
    return [_returned(tree, part) for part in returned]


def _returned(tree: Tree, part: ReturnedPart) -> Wrap:
    """Rewrite `return r.a` → `return __pml_returned("n1", ["a"], "r.a", 2, 8, r.a)`, with the
    author's text, line and column."""
    text = _SPACES.sub(
        " ", tree.source.authors_part(part.node.start, part.node.end)[:_MAX_INSPECTED]
    )
    told = text if len(text) <= _MAX_TOLD else f"{text[:_MAX_TOLD]}…"
    line, column = tree.position(part.node)
    given = ", ".join(json.dumps(each) for each in (part.node_id, part.path, told, line, column))
    return _round(part.node, f"{_RETURNED}({given}, ", ")")


def _report_of(node: Node) -> str:
    """Return the report of the outcome of a short circuit."""
    return "absent" if node["operator"].kind.startswith("??") else "decide"


def _as_last_argument(node: Node, before: str) -> Wrap:
    """Wrap an expression as the last argument of a call."""
    opening, closing = ("(", ")") if node.kind == "sequence_expression" else ("", "")
    return _round(node, f"{before}{opening}", f"{closing})")


def _round(node: Node, before: str, after: str) -> Wrap:
    return Wrap(node.start, node.end, before, after)


def _at_start(body: Node, statements: str, *, is_statement: bool = False) -> Wrap:
    """Put statements before all others of a body, which may be a block, one statement, or the value
    of an arrow function."""
    if body.kind == "statement_block":
        return Wrap(body.start + 1, body.start + 1, f" {statements}")
    if is_statement:
        return _round(body, f"{{ {statements}", " }")
    return _round(body, f"{{ {statements}return (", "); }")
