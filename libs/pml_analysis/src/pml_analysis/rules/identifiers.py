"""Names pass: what the grammar takes for a name and JavaScript does not."""

from collections.abc import Iterator
from typing import Final

from pml_analysis.names.bindings import Scopes
from pml_analysis.syntax.tree import Node, Tree
from pml_analysis.text.characters import ODD, named
from pml_analysis.text.lookalikes import disguise, disguised, read_as
from pml_analysis.text.problems import Problem

NAMES: Final = (
    "identifier",
    "private_property_identifier",
    "property_identifier",
    "shorthand_property_identifier",
    "shorthand_property_identifier_pattern",
    "statement_identifier",
    "type_identifier",
)
RESERVED: Final = "__pml"
"""How the names begin that instrumentation adds."""

_WORDS: Final = """
    await break case catch class const continue debugger default delete do else enum export
    extends false finally for function if implements import in instanceof interface let new null
    package private protected public return static super switch this throw true try typeof var void
    while with yield"""
_LANGUAGE: Final = frozenset(_WORDS.split())
"""Words that are no names in modules."""

_BOUND_ELSEWHERE: Final = ("arguments", "eval")
_ROOTS: Final = ("mcp", "capabilities")


def faulty_names(tree: Tree, scopes: Scopes) -> Iterator[Problem]:
    """Names that hold what no name can, that are reserved, or that pass for `mcp`."""
    declared = [binding.node for binding in scopes.bindings]
    is_plain = _is_plain(tree)
    for node in [*scopes.free, *declared, *tree.of("statement_identifier")]:
        name = tree.name(node)
        if name in _LANGUAGE:
            yield Problem(node.start, f"{name} is a word of the language: use another name.")
        elif name.startswith(RESERVED):
            message = f"Names that begin with {RESERVED} are reserved: use another name."
            yield Problem(node.start, message)
        elif not is_plain and name not in _ROOTS and disguised(name) in _ROOTS:
            message = f"{name} is not {disguised(name)}: it has {disguise(name)}."
            yield Problem(node.start, message)
    for binding in scopes.bindings:
        if binding.name in _BOUND_ELSEWHERE:
            yield Problem(binding.node.start, f"{binding.name} cannot be a name of yours.")
    for node in _unusual(tree):
        char = _foreign(tree.name(node).removeprefix("#"))
        text = tree.text(node)
        if char is not None and "\\" in text:
            yield Problem(node.start, f"{text} is no name: it stands for what no name may hold.")
        elif char is not None:
            yield Problem(node.start, _not_in_a_name(char))


def escaped_names(tree: Tree) -> Iterator[Problem]:
    """Names that are written with escapes, so that they read as other than they are."""
    for node in _unusual(tree):
        if "\\" in tree.text(node):
            message = f"This name is {tree.name(node)}, written with escapes: write it out."
            yield Problem(node.start, message)


def _is_plain(tree: Tree) -> bool:
    """Whether all names are certainly plain ASCII."""
    text = tree.source.text
    return text.isascii() and "\\" not in text


def _unusual(tree: Tree) -> Iterator[Node]:
    """Names that are not plain ASCII."""
    if _is_plain(tree):
        return
    for node in tree.of(*NAMES):
        name = tree.text(node)
        if not name.isascii() or "\\" in name:
            yield node


def _foreign(name: str) -> str | None:
    """The first character that cannot stand in a name; one that nobody sees is told elsewhere."""
    for index, char in enumerate(name):
        valid = char if index == 0 else f"a{char}"
        if not (char == "$" or valid.isidentifier() or ODD.match(char)):
            return char
    return None


def _not_in_a_name(char: str) -> str:
    seen = read_as(char)
    hint = "remove it" if seen == char else f"write {seen}"
    shown = named(char) if char.isprintable() and not char.isascii() else repr(char)
    return f"{shown} cannot stand in a name: {hint}."
