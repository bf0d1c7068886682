"""Instrumentation pass (A10): the author's text, with node ids at calls and outcomes at decisions.

Nothing is taken away and no line is added, so that lines in errors stay the author's. A program
can tell only by the text of its own functions (`f.toString()`).
"""

from collections.abc import Container, Mapping, Sequence

from pml_analyzer.domain.calls import CallSite
from pml_analyzer.domain.choices import condition_of
from pml_analyzer.domain.origins import BOUND_ROOTS
from pml_analyzer.syntax.edits import Wrap, apply
from pml_analyzer.syntax.tree import Node, Tree


def instrument(
    tree: Tree,
    sites: Mapping[str, CallSite],
    decisions: Mapping[str, Node],
    prologue: str,
) -> str:
    """The program that runs; `sites` and `decisions` by node id."""
    wraps: list[Wrap] = []
    for node_id, site in sites.items():
        wraps += _call(tree, node_id, site)
    for node_id, node in decisions.items():
        wraps.append(_condition(node_id, condition_of(node)))
    return prologue + apply(tree.source.text, wraps)


def prologue(free: Sequence[str], spoken: Sequence[str], arguments: str) -> str:
    """Binds, on the author's first line, the names that the caller's arguments are read by."""
    whole = "".join(f"const {name} = {arguments}; " for name in spoken)
    parts = f"const {{ {', '.join(free)} }} = {arguments}; " if free else ""
    return parts + whole


def arguments_name(top: Container[str]) -> str | None:
    """A name that the caller's arguments have in spite of the author's own declarations."""
    return next((name for name in BOUND_ROOTS if name not in top), None)


def _call(tree: Tree, node_id: str, site: CallSite) -> list[Wrap]:
    """`E(…)` → `__pml.at("n1", E)(…)`.

    A callee that an optional chain may leave undefined stays so: `a?.b(…)` →
    `__pml.at("n1", a?.b)?.(…)`.
    """
    callee = site.callee
    wraps = [Wrap(callee.start, callee.end, f'__pml.at("{node_id}", ', ")")]
    optional = any(node.kind == "optional_chain" for node in tree.subtree(callee))
    if optional and callee.kind != "parenthesized_expression":
        follows = site.call.child("type_arguments") or site.call["arguments"]
        if tree.source.text[callee.end : follows.start].strip() == "":
            wraps.append(Wrap(follows.start, follows.start, "?."))
    return wraps


def _condition(node_id: str, condition: Node) -> Wrap:
    """`if (C)` → `if (__pml.decide("d1", C))`; the same round the condition of `C ? a : b`."""
    opening, closing = ("(", ")") if condition.kind == "sequence_expression" else ("", "")
    before = f'__pml.decide("{node_id}", {opening}'
    return Wrap(condition.start, condition.end, before, f"{closing})")
