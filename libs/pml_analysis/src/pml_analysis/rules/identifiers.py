"""Identifiers pass: names that the grammar accepts and JavaScript does not."""

import unicodedata
from collections.abc import Iterator
from typing import Final

from pml_analysis.names.bindings import Scopes
from pml_analysis.syntax.node_kinds import IDENTIFIERS
from pml_analysis.syntax.tree import Node, Tree
from pml_analysis.text.characters import ODD, named
from pml_analysis.text.confusables import confusable_character, imitated_name, read_as
from pml_analysis.text.problems import Problem

RESERVED: Final = "__pml"
"""Prefix of the names that instrumentation adds."""

_WORDS: Final = """
    await break case catch class const continue debugger default delete do else enum export
    extends false finally for function if implements import in instanceof interface let new null
    package private protected public return static super switch this throw true try typeof var void
    while with yield"""
_LANGUAGE: Final = frozenset(_WORDS.split())
"""Words that are no names in modules."""

_ALSO: Final = "$_"
_BEGINNING: Final = frozenset({"Ll", "Lm", "Lo", "Lt", "Lu", "Nl"})
_CONTINUING: Final = frozenset({"Mc", "Mn", "Nd", "Pc"})
_ALSO_BEGINNING: Final = "\u1885\u1886\u2118\u212e\u309b\u309c"
_ALSO_CONTINUING: Final = (
    "\u00b7\u0387\u1369\u136a\u136b\u136c\u136d\u136e\u136f\u1370\u1371\u19da\u30fb\uff65"
)
_NEVER: Final = "\u2e2f"
"""Complement of Unicode's ID_Start and ID_Continue; Python's own names have a few characters
less."""

_UNKNOWN: Final = "Cn"
"""Characters newer than this Python's Unicode, left to the compiler."""

_BOUND_ELSEWHERE: Final = ("arguments", "eval")
_ROOTS: Final = ("mcp", "capabilities")


def invalid_names(tree: Tree, scopes: Scopes) -> Iterator[Problem]:
    """Return names with illegal characters, reserved names, and names that imitate `mcp`."""
    declared = [binding.node for binding in scopes.bindings]
    is_plain = _is_plain(tree)
    for node in [*scopes.free, *declared, *tree.of("statement_identifier")]:
        name = tree.name(node)
        if name in _LANGUAGE:
            yield Problem(node.start, f"{name} is a word of the language: use another name.")
        elif name.startswith(RESERVED):
            message = f"Names that begin with {RESERVED} are reserved: use another name."
            yield Problem(node.start, message)
        elif not is_plain and name not in _ROOTS and imitated_name(name) in _ROOTS:
            message = f"{name} is not {imitated_name(name)}: it has {confusable_character(name)}."
            yield Problem(node.start, message)
    for binding in scopes.bindings:
        if binding.name in _BOUND_ELSEWHERE:
            yield Problem(binding.node.start, f"{binding.name} cannot be a name of yours.")
    for node in _unusual(tree):
        char = _invalid_character(tree.name(node).removeprefix("#"))
        text = tree.text(node)
        if char is not None and "\\" in text:
            yield Problem(
                node.start, f"{text} is no name: its escapes decode to what no name may contain."
            )
        elif char is not None:
            yield Problem(node.start, _not_in_a_name(char))


def escaped_names(tree: Tree) -> Iterator[Problem]:
    """Return names written with escapes, which read as other than they are."""
    for node in _unusual(tree):
        if "\\" in tree.text(node):
            message = f"This name is {tree.name(node)}, written with escapes: write it out."
            yield Problem(node.start, message)


def _is_plain(tree: Tree) -> bool:
    """Whether all names are certainly plain ASCII."""
    text = tree.source.text
    return text.isascii() and "\\" not in text


def _unusual(tree: Tree) -> Iterator[Node]:
    """Return names that are not plain ASCII."""
    if _is_plain(tree):
        return
    for node in tree.of(*IDENTIFIERS):
        name = tree.text(node)
        if not name.isascii() or "\\" in name:
            yield node


def _invalid_character(name: str) -> str | None:
    """Return the first character that is illegal in a name; invisible ones are reported
    elsewhere."""
    for index, char in enumerate(name):
        if not (char in _ALSO or _is_allowed(char, index) or ODD.match(char)):
            return char
    return None


def _is_allowed(char: str, index: int) -> bool:
    """Whether a character may begin a name, or continue one."""
    category = unicodedata.category(char)
    if category in _BEGINNING or char in _ALSO_BEGINNING:
        return char not in _NEVER
    return category == _UNKNOWN or (
        index > 0 and (category in _CONTINUING or char in _ALSO_CONTINUING)
    )


def _not_in_a_name(char: str) -> str:
    seen = read_as(char)
    hint = "remove it" if seen == char else f"write {seen}"
    shown = named(char) if char.isprintable() and not char.isascii() else repr(char)
    return f"{shown} is not allowed in a name: {hint}."
