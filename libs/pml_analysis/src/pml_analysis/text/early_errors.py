"""Early errors pass: syntax that parses but that engines reject because of its position.

Reported here, it is reported before any approval; the grammar leaves these rules to others. Syntax
that is rejected in every position: well_formedness.py.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from pml_analysis.syntax.node_kinds import FUNCTIONS, INITIALIZERS, LOOPS
from pml_analysis.syntax.tree import Node, Tree
from pml_analysis.text.problems import Problem


@dataclass(slots=True)
class _Function:
    """A function, or the program, and the constructs allowed in it; places are indexes of nodes.

    `inside_from` is where it begins: the name of a method is outside. `loops_until`,
    `breaks_until`: the ends of the innermost loop, and of the innermost loop or switch. `labels`
    are by name: their ends, and whether they name a loop.
    """

    stop: int
    outer: "_Function | None" = None
    node: Node | None = None
    inside_from: int = 0
    is_async: bool = True
    is_generator: bool = False
    has_super: bool = False
    has_target: bool = False
    loops_until: int = 0
    breaks_until: int = 0
    labels: dict[str, tuple[int, bool]] = field(default_factory=dict[str, tuple[int, bool]])


def early_errors(tree: Tree) -> Iterator[Problem]:
    """Return the constructs that an engine would reject in their position."""
    relevant = tree.of(*_CHECKED)
    if not relevant:
        return
    relevant += tree.of(*_ENTERED)
    relevant.sort(key=lambda node: node.index)
    inside = _Function(len(tree.nodes))
    for node in relevant:
        while node.index >= inside.stop and inside.outer is not None:
            inside = inside.outer
        check = _CHECKED.get(node.kind)
        if check is not None:
            here = inside
            while node.index < here.inside_from and here.outer is not None:
                here = here.outer
            why = check(tree, node, here)
            if why is not None:
                yield Problem(node.start, why)
        enter = _ENTERED.get(node.kind)
        if enter is not None:
            inside = enter(tree, node, inside)


def _function(_: Tree, node: Node, outer: _Function) -> _Function:
    kinds = {child.kind for child in node.children}
    is_arrow = node.kind == "arrow_function"
    parameters = node.child("parameters") or node.child("parameter") or node
    return _Function(
        stop=node.stop,
        outer=outer,
        node=node,
        inside_from=parameters.index,
        is_async="async" in kinds,
        is_generator="*" in kinds,
        has_super=outer.has_super if is_arrow else node.kind == "method_definition",
        has_target=outer.has_target if is_arrow else True,
    )


def _member(_: Tree, node: Node, outer: _Function) -> _Function:
    """Enter a field or static block of a class, which runs like a method."""
    value = node if node.kind == "class_static_block" else node.child("value") or node
    return _Function(
        stop=node.stop,
        outer=outer,
        node=outer.node,
        inside_from=value.index,
        is_async=outer.is_async,
        has_super=True,
        has_target=True,
    )


def _loop(_: Tree, node: Node, inside: _Function) -> _Function:
    inside.loops_until = max(inside.loops_until, node.stop)
    inside.breaks_until = max(inside.breaks_until, node.stop)
    return inside


def _switch(_: Tree, node: Node, inside: _Function) -> _Function:
    inside.breaks_until = max(inside.breaks_until, node.stop)
    return inside


def _label(tree: Tree, node: Node, inside: _Function) -> _Function:
    body = node["body"]
    while body.kind == "labeled_statement":
        body = body["body"]
    inside.labels[tree.name(node["label"])] = (node.stop, body.kind in LOOPS)
    return inside


def _await(tree: Tree, node: Node, inside: _Function) -> str | None:
    if inside.node is None or inside.is_async:
        return None
    if node.kind == "for_in_statement" and all(child.kind != "await" for child in node.children):
        return None
    line = tree.position(inside.node).line
    return f"await is in a function that is not async: write async before it, on line {line}."


def _yield(_: Tree, node: Node, inside: _Function) -> str | None:
    return None if inside.is_generator else "yield is outside a generator: write function*."


def _break(tree: Tree, node: Node, inside: _Function) -> str | None:
    label = node.child("label")
    if label is None:
        is_inside = node.index < inside.breaks_until
        return None if is_inside else "break is outside a loop or switch: use return."
    until, _ = inside.labels.get(tree.name(label), (0, False))
    return None if node.index < until else _NO_LABEL.format(tree.name(label))


def _continue(tree: Tree, node: Node, inside: _Function) -> str | None:
    label = node.child("label")
    if label is None:
        is_inside = node.index < inside.loops_until
        return None if is_inside else "continue is outside a loop: use return."
    until, is_loop = inside.labels.get(tree.name(label), (0, False))
    return None if is_loop and node.index < until else _NO_LABEL.format(tree.name(label))


def _super(_: Tree, node: Node, inside: _Function) -> str | None:
    return None if inside.has_super else "super is outside a method: there is no parent object."


def _target(tree: Tree, node: Node, inside: _Function) -> str | None:
    if inside.has_target or tree.text(node).startswith("import"):
        return None
    return "new.target is outside a function: a program is called without new."


_NO_LABEL: Final = "No statement round this that it could leave is labelled {}."
_Enter = Callable[[Tree, Node, _Function], _Function]
_Check = Callable[[Tree, Node, _Function], str | None]
_ENTERED: Final[dict[str, _Enter]] = {
    **dict.fromkeys(sorted(FUNCTIONS), _function),
    **dict.fromkeys(sorted(INITIALIZERS), _member),
    **dict.fromkeys(sorted(LOOPS), _loop),
    "switch_statement": _switch,
    "labeled_statement": _label,
}
_CHECKED: Final[dict[str, _Check]] = {
    "await_expression": _await,
    "break_statement": _break,
    "continue_statement": _continue,
    "for_in_statement": _await,
    "meta_property": _target,
    "super": _super,
    "yield_expression": _yield,
}
