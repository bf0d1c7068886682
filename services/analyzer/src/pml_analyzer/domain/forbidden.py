"""Forbidden constructs pass (A12): defence in depth; the sandbox holds without it."""

from collections.abc import Iterator
from typing import Final

from pml_analyzer.domain.bindings import Scopes
from pml_analyzer.domain.early_errors import early_errors
from pml_analyzer.domain.globals import FORBIDDEN, GLOBALS
from pml_analyzer.domain.origins import BOUND_ROOTS, MEMBERS, Origins
from pml_analyzer.domain.problems import Problem
from pml_analyzer.syntax.queries import captures
from pml_analyzer.syntax.tree import FUNCTIONS, Node, Tree

RESERVED: Final = "__pml"
"""How the names begin that instrumentation adds."""

_CONSTRUCTS: Final[dict[str, str]] = {
    "decorator": "Decorators are not supported.",
    "dynamic_import": "import() is not allowed: programs may not load other code.",
    "export": "export is not allowed: a program is the body of a function; use return.",
    "hash_bang": "A #! line is not allowed: a program is the body of a function.",
    "html_comment": "HTML comments are not allowed: write // or /* */.",
    "import": "import is not allowed: programs may not load other code; tools are under mcp.",
    "import_meta": "import.meta is not allowed: a program is the body of a function.",
    "namespace": "Namespaces are not supported: use objects or functions.",
    "with": "with is not allowed: what its names mean cannot be analysed.",
}
_SIGNS: Final = ("#!", "-->", "<!--", "@", "export", "import", "module", "namespace", "with")
"""One of them is in every text that holds such a construct; most texts hold none."""

_CALLING: Final = frozenset({("call_expression", "function"), ("new_expression", "constructor")})
_KEYS: Final[dict[str, str]] = {
    "__defineGetter__": "it changes objects that are not the program's",
    "__defineSetter__": "it changes objects that are not the program's",
    "__lookupGetter__": "it reaches into objects that are not the program's",
    "__lookupSetter__": "it reaches into objects that are not the program's",
    "__proto__": "prototypes are not for programs",
    "constructor": "through it code can be made from text",
    "setPrototypeOf": "prototypes are not for programs",
}


def forbidden(tree: Tree, scopes: Scopes, origins: Origins) -> list[Problem]:
    """Every construct that no program may use, with its reason, in source order."""
    found = [
        *_constructs(tree),
        *early_errors(tree),
        *_names(tree, scopes),
        *_writes(tree, scopes),
        *_keys(tree, origins),
    ]
    return sorted(found, key=lambda problem: problem.offset)


def _constructs(tree: Tree) -> Iterator[Problem]:
    if any(sign in tree.source.text for sign in _SIGNS):
        for capture in captures(tree.raw, tree.source, "forbidden"):
            yield Problem(capture.start, _CONSTRUCTS[capture.name])


def _names(tree: Tree, scopes: Scopes) -> Iterator[Problem]:
    for node in scopes.free:
        name = tree.name(node)
        if name in FORBIDDEN:
            yield Problem(node.start, f"{name} is not allowed: {FORBIDDEN[name]}.")
        elif _is_called(node) and name not in GLOBALS and name not in ("mcp", "capabilities"):
            message = f"{name} is called but declared nowhere: what the caller hands in is data."
            yield Problem(node.start, message)
        elif name == "arguments" and not _is_in_function(node):
            yield Problem(node.start, "arguments is not there: the caller's arguments are args.")
    named = [*scopes.free, *(binding.node for binding in scopes.bindings)]
    for node in [*named, *tree.of("statement_identifier")]:
        if tree.name(node).startswith(RESERVED):
            yield Problem(node.start, f"Names that begin with {RESERVED} are reserved.")


def _is_called(node: Node) -> bool:
    return (node.above.kind, node.field) in _CALLING


def _is_in_function(node: Node) -> bool:
    """Whether an `arguments` object of the program's own is in reach."""
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
    for target in scopes.member_writes:
        for member in _chain(target.node):
            name = member.child("property")
            if name is not None and tree.name(name) == "prototype":
                yield Problem(name.start, "prototype cannot be changed: other code relies on it.")


def _chain(node: Node) -> Iterator[Node]:
    """The members that a write goes through."""
    while node.kind in MEMBERS:
        yield node
        node = node.children[0].inner


def _keys(tree: Tree, origins: Origins) -> Iterator[Problem]:
    for member in tree.of(*MEMBERS):
        key = origins.key(member)
        if isinstance(key, str) and key in _KEYS and not _is_name_of_class(member, key, origins):
            yield _key_problem(member.children[-1], key)
    for binding in origins.scopes.bindings:
        for part in binding.parts:
            for step in part.path:
                if isinstance(step, str) and step in _KEYS:
                    yield _key_problem(binding.node, step)
    for pair in tree.of("pair"):
        if tree.text(pair.children[0]).strip("\"'") == "__proto__":
            yield _key_problem(pair, "__proto__")


def _is_name_of_class(member: Node, key: str, origins: Origins) -> bool:
    """`value.constructor.name` only tells what a value is."""
    above = member.above
    is_opened = above.kind in MEMBERS and above.operand is member
    return key == "constructor" and is_opened and origins.key(above) == "name"


def _key_problem(node: Node, key: str) -> Problem:
    return Problem(node.start, f"{key} is not allowed: {_KEYS[key]}.")
