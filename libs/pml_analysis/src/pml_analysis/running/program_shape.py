"""Program shape pass: the normal form without its literals; programs of one shape differ by these.

A literal here is a value that a caller could pass instead: a text, a number, true, false, or a list
of these. Others belong to the shape: null, which no default replaces; regular expressions; keys and
indices, which choose a part of a value; texts around the parts of a template; what a statement
begins with; and every literal of a program with calls whose targets are known only at run time: it
may choose them.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from pml_analysis.names.bindings import Scopes
from pml_analysis.names.constants import json_value
from pml_analysis.names.origins import Origins
from pml_analysis.running.normal_form import normal_form
from pml_analysis.structure.calls import Calls, find_calls
from pml_analysis.structure.escapes import add_escapes
from pml_analysis.syntax.tree import Node, Tree

_SCALARS: Final = frozenset({"false", "number", "string", "template_string", "true"})
_FIXED_PLACES: Final = frozenset({"index", "key", "name"})
_FIXED_PARENTS: Final = frozenset({"computed_property_name", "enum_assignment"})


@dataclass(frozen=True)
class Literal:
    """A literal and its value."""

    node: Node
    value: JsonValue


@dataclass(frozen=True)
class ProgramShape:
    """Equal hashes: the programs differ by literals alone. `literals` are in source order;
    `targets` are the tools and capabilities called, by call site."""

    tree: Tree
    shape_hash: str
    literals: Sequence[Literal]
    targets: Sequence[str]
    is_dynamic: bool

    @property
    def makes_calls(self) -> bool:
        """Whether it calls a tool or a capability, or may call one."""
        return self.is_dynamic or bool(self.targets)


def program_shape(tree: Tree, scopes: Scopes) -> ProgramShape:
    """Return the shape of a program. Layout, comments, types and local names do not change it."""
    origins = Origins(tree, scopes)
    calls = find_calls(tree, origins)
    add_escapes(calls, origins)
    literals = [] if calls.dynamic else list(_literals(origins))
    targets = _targets(calls)
    words = {literal.node.index: _word(literal) for literal in literals}
    form = normal_form(tree, scopes, words)
    text = "\n".join([form, *targets])
    return ProgramShape(
        tree,
        hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        literals,
        targets,
        bool(calls.dynamic),
    )


def _word(literal: Literal) -> str:
    return "list" if isinstance(literal.value, list) else "literal"


def _targets(calls: Calls) -> list[str]:
    return [site.tool_id for site in sorted(calls.sites, key=lambda site: site.call.index)]


def _literals(origins: Origins) -> Iterator[Literal]:
    covered = 0
    for node in origins.tree.nodes:
        if node.index < covered or not _is_literal(origins.tree, node):
            continue
        value = json_value(origins, node)
        if value is not None:
            yield Literal(node, value)
            covered = node.stop


def _is_literal(tree: Tree, node: Node) -> bool:
    if node.kind == "array":
        return all(item.kind == "," or _is_scalar(tree, item) for item in node.children)
    return _is_scalar(tree, node) and not _is_fixed(node)


def _is_scalar(tree: Tree, node: Node) -> bool:
    if node.kind == "unary_expression":
        return tree.text(node["operator"]) == "-" and node["argument"].kind == "number"
    has_parts = any(child.kind == "template_substitution" for child in node.children)
    return node.kind in _SCALARS and not has_parts


def _is_fixed(node: Node) -> bool:
    """Whether a literal stands where no expression can, or chooses a part of a value."""
    whole = node
    while whole.above.kind == "parenthesized_expression":
        whole = whole.above
    is_tagged = whole.kind == "template_string" and whole.field == "arguments"
    is_place = whole.field in _FIXED_PLACES or whole.above.kind in _FIXED_PARENTS
    return is_place or is_tagged or _begins_statement(whole)


def _begins_statement(node: Node) -> bool:
    """Whether a statement begins with it: a directive, or a text that ends the one before where
    that has no semicolon."""
    above = node.above
    while above.start == node.start and above.kind != "expression_statement":
        above = above.above
    return above.start == node.start
