"""Forbidden constructs pass: defence in depth; the sandbox holds without it."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from pml_analysis.names.bindings import Scopes
from pml_analysis.names.builtins import Builtins
from pml_analysis.names.globals import FORBIDDEN, GLOBAL_OBJECTS, GLOBALS
from pml_analysis.names.origins import BOUND_ROOTS, Origins
from pml_analysis.names.values import Constant, holds_tools
from pml_analysis.rules.identifiers import invalid_names
from pml_analysis.rules.prototypes import prototype_accesses
from pml_analysis.syntax.node_kinds import FUNCTIONS, WRAPPERS
from pml_analysis.syntax.queries import captures
from pml_analysis.syntax.tree import Node, Tree
from pml_analysis.text.characters import misplaced_characters
from pml_analysis.text.early_errors import early_errors
from pml_analysis.text.html_comments import html_comments
from pml_analysis.text.problems import Problem
from pml_analysis.text.type_arguments import misread_type_arguments
from pml_analysis.text.well_formedness import well_formedness_errors

_MAX_PROBLEMS: Final = 100
"""Maximum number of problems of one sort that are looked for: no more are reported."""

_CONSTRUCTS: Final[dict[str, str]] = {
    "decorator": "Decorators are not supported: call the function yourself.",
    "dynamic_import": "import() is not allowed: programs may not load other code; tools are under "
    "mcp.",
    "export": "export is not allowed: a program is the body of a function; use return.",
    "hash_bang": "A #! line is not allowed: a program is the body of a function; remove it.",
    "html_comment": "HTML comments are not allowed: write // or /* */.",
    "import": "import is not allowed: programs may not load other code; tools are under mcp.",
    "import_meta": "import.meta is not allowed: a program is the body of a function.",
    "namespace": "Namespaces are not supported: use objects or functions.",
    "using": "using is not supported: write const, and release its resources in finally.",
    "with": "with is not allowed: its names cannot be resolved; write object.name.",
}
_SIGNS: Final = (
    *("#!", "-->", "<!--", "@", "export", "import", "module", "namespace", "using", "with"),
)
"""Substrings of which every text contains one that has such a construct; most texts have none."""

_CALLING: Final = frozenset(
    {
        ("call_expression", "function"),
        ("extends_clause", "value"),
        ("new_expression", "constructor"),
    }
)
_TIMERS: Final = (("setInterval",), ("setTimeout",))


def forbidden(tree: Tree, scopes: Scopes, origins: Origins) -> list[Problem]:
    """Return the constructs that no program may use, in source order; of several in one place the
    first."""
    builtins = Builtins(origins)
    sorts = (
        html_comments(tree.raw, tree.source),
        _constructs(tree),
        iter(misplaced_characters(tree.raw, tree.source)),
        _names(tree, scopes, origins),
        invalid_names(tree, scopes),
        early_errors(tree),
        well_formedness_errors(tree),
        misread_type_arguments(tree),
        _writes(tree, scopes),
        prototype_accesses(origins, builtins),
        _misused_tools(tree, origins),
        _timers(tree, origins, builtins),
    )
    found: dict[int, Problem] = {}
    for sort in sorts:
        for problem in islice(sort, _MAX_PROBLEMS):
            found.setdefault(problem.offset, problem)
    return [found[at] for at in sorted(found)]


def _constructs(tree: Tree) -> Iterator[Problem]:
    if any(sign in tree.source.text for sign in _SIGNS):
        for capture in captures(tree.raw, tree.source, "forbidden"):
            yield Problem(capture.start, _CONSTRUCTS[capture.name])


def _names(tree: Tree, scopes: Scopes, origins: Origins) -> Iterator[Problem]:
    """Return the free names that no program may use, or not so."""
    for node in scopes.free:
        name = tree.name(node)
        if name in FORBIDDEN:
            if not _is_existence_test(node):
                how = _global_access(node, origins) if name in GLOBAL_OBJECTS else ""
                yield Problem(node.start, f"{name} is not allowed: {how}{FORBIDDEN[name]}.")
        elif _is_called(node) and name not in GLOBALS and name not in ("mcp", "capabilities"):
            message = (
                f"{name} is called but not declared: the caller's arguments are data; "
                "declare a function of that name, or call a tool under mcp."
            )
            yield Problem(node.start, message)
        elif name == "arguments" and not _is_in_function(node):
            yield Problem(node.start, "arguments is not there: the caller's arguments are args.")


def _is_existence_test(node: Node) -> bool:
    """Whether it is `typeof process`, which only tests for existence."""
    above = node.above
    return above.kind == "unary_expression" and above["operator"].kind == "typeof"


def _global_access(node: Node, origins: Origins) -> str:
    """Return the name that `globalThis["ev" + "al"]` reaches, where that is composed."""
    above = node.above
    while above.kind in WRAPPERS:
        node, above = above, above.above
    if above.kind != "subscript_expression" or above.operand is not node:
        return ""
    key = origins.key(above)
    target = f"to {key}" if isinstance(key, str) else "to a name known only at run time"
    return f"dynamic global access, here {target}; "


def _is_called(node: Node) -> bool:
    return (node.above.kind, node.field) in _CALLING


def _is_in_function(node: Node) -> bool:
    """Whether an `arguments` object of the program's own is in scope."""
    parent = node.parent
    while parent is not None:
        if parent.kind in FUNCTIONS and parent.kind != "arrow_function":
            return True
        parent = parent.parent
    return False


def _writes(tree: Tree, scopes: Scopes) -> Iterator[Problem]:
    bound = {*BOUND_ROOTS, "mcp", "capabilities", "console"}
    for node in scopes.free_writes:
        name = tree.name(node)
        hint = "give yours another name" if name in bound else f"write let {name} = … first"
        what = "cannot be assigned" if name in bound else "is assigned but never declared"
        yield Problem(node.start, f"{name} {what}: {hint}.")
    for node in scopes.redeclared:
        yield Problem(node.start, f"{tree.name(node)} is already declared in this block.")


def _misused_tools(tree: Tree, origins: Origins) -> Iterator[Problem]:
    """Return tools that are not called as `mcp.fs.read({ … })`."""
    for call in tree.of("call_expression"):
        given = call["arguments"]
        if given.kind == "template_string" and holds_tools(origins.of(call["function"])):
            message = "A tool takes one object, not a template: write ({ … }) in its place."
            yield Problem(given.start, message)


def _timers(tree: Tree, origins: Origins, builtins: Builtins) -> Iterator[Problem]:
    """Return timers that get text to compile."""
    if not any(name in tree.source.text for (name,) in _TIMERS):
        return
    for call in tree.of("call_expression"):
        given = call["arguments"].children
        if not given or call["function"].inner.kind != "identifier":
            continue
        is_text = given[0].inner.kind == "template_string" or isinstance(
            origins.of(given[0]), Constant
        )
        path = builtins.path(call["function"]) if is_text else None
        if path in _TIMERS:
            message = f"{path[0]} takes a function: code made from text cannot be analysed."
            yield Problem(given[0].start, message)
