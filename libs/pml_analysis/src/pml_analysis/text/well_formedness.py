"""Well-formedness pass: syntax that the grammar accepts and engines reject in every position."""

import re
from collections.abc import Iterator
from typing import Final

from pml_analysis.syntax.node_kinds import (
    ASSIGNED_FIELD,
    CHAIN_LINKS,
    DECLARATIONS,
    MEMBERS,
    PATTERNS,
)
from pml_analysis.syntax.tree import Node, Tree
from pml_analysis.text.optional_chains import misplaced_chains
from pml_analysis.text.problems import Problem

_OCTAL_NUMBER: Final = re.compile(r"0[0-9_]")
_ESCAPE: Final = re.compile(
    r"\\(?:([1-9]|0[0-9])|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{0*(?:[0-9a-fA-F]{1,5}|10[0-9a-fA-F]{4})\}"
    r"|([xu])|\r\n|[\s\S])"
)
"""An escape in a literal; the first group matches in an octal one, the second in an unfinished
one."""

_FLAGS: Final = frozenset("dgimsuvy")
_LINE_ENDS: Final = re.compile(r"\\(?:\r\n|[\s\S])|([\r\n])")
_LOGICAL: Final = frozenset({"&&", "||"})
_BODIES: Final = (
    ("if_statement", "consequence"),
    ("else_clause", None),
    ("labeled_statement", "body"),
    ("do_statement", "body"),
    ("for_in_statement", "body"),
    ("for_statement", "body"),
    ("while_statement", "body"),
)


_WRITABLE: Final = MEMBERS | {*PATTERNS, "identifier", "undefined"}


def well_formedness_errors(tree: Tree) -> Iterator[Problem]:
    """Return each with its place."""
    yield from _declarations(tree)
    yield from _statements(tree)
    yield from _operators(tree)
    yield from misplaced_chains(tree)
    yield from _literals(tree)
    yield from _private_names(tree)


def _declarations(tree: Tree) -> Iterator[Problem]:
    for node in tree.of("variable_declarator"):
        if node.child("value") is None and _needs_value(node):
            yield Problem(node.start, f"{tree.text(node['name'])[:60]} needs a value: write = ….")
    for node in tree.of(*DECLARATIONS):
        place = (node.above.kind, node.field)
        if place in _BODIES:
            yield Problem(node.start, "A declaration is not allowed here alone: put it in braces.")


def _needs_value(declarator: Node) -> bool:
    kind = declarator.above.child("kind")
    is_const = kind is not None and kind.kind == "const"
    return is_const or declarator["name"].kind != "identifier"


def _statements(tree: Tree) -> Iterator[Problem]:
    text = tree.source.text
    for node in tree.of("expression_statement"):
        if text[node.start] == "{" and _is_object(node.children[0]):
            message = "What begins with { is a block here: write return, or parentheses round it."
            yield Problem(node.start, message)
    for node in tree.of("try_statement"):
        if node.child("handler") is None and node.child("finalizer") is None:
            yield Problem(node.start, "try needs catch or finally.")
    for node in tree.of("type_annotation"):
        if node.above.kind == "parenthesized_expression":
            yield Problem(node.start, "A type is not allowed in parentheses: write as, or =>.")


def _is_object(node: Node) -> bool:
    """Whether the grammar reads an object, or a part of one, where JavaScript reads a block; the
    grammar's reading of `{ a: f() }` depends on the layout. An empty one has no content."""
    is_opened = node.kind in CHAIN_LINKS
    while node.kind in CHAIN_LINKS:
        node = node.children[0]
    return node.kind == "object" and (is_opened or bool(node.children))


def _operators(tree: Tree) -> Iterator[Problem]:
    for node in tree.of("binary_expression"):
        sign = node["operator"].kind
        for side in node.children[0], node.children[-1]:
            if side.kind == "binary_expression" and _is_mixed(sign, side["operator"].kind):
                yield Problem(side.start, "?? beside && or || needs parentheses.")
        if sign == "**" and node["left"].kind in ("await_expression", "unary_expression"):
            yield Problem(node.start, "A sign before ** needs parentheses.")
    for kind, field in ASSIGNED_FIELD.items():
        for node in tree.of(kind):
            if node[field].inner.kind not in _WRITABLE:
                yield Problem(
                    node[field].start, "This cannot be assigned: only names and members can."
                )
    for node in tree.of("unary_expression"):
        operand = node["argument"].inner
        if node["operator"].kind == "delete" and operand.kind == "identifier":
            yield Problem(node.start, "delete takes a part of an object: set a name to undefined.")


def _is_mixed(outer: str, inner: str) -> bool:
    return (outer == "??" and inner in _LOGICAL) or (inner == "??" and outer in _LOGICAL)


def _literals(tree: Tree) -> Iterator[Problem]:
    text = tree.source.text
    for node in tree.of("number"):
        if _OCTAL_NUMBER.match(text, node.start):
            yield Problem(node.start, "A number cannot begin with 0: write 0o for octal.")
    for node in tree.of("regex"):
        flags = text[text.rindex("/", node.start, node.end) + 1 : node.end]
        if len(set(flags)) < len(flags) or not set(flags) <= _FLAGS or {"u", "v"} <= set(flags):
            yield Problem(node.start, f"No regular expression has the flags {flags[:20]}.")
    if "\\" in text:
        yield from _escapes(tree)
    for node in tree.of("string"):
        line_end = next((m for m in _LINE_ENDS.finditer(text, node.start, node.end) if m[1]), None)
        if line_end is not None:
            message = "A text in quotes ends on its line: use a template in backquotes."
            yield Problem(node.start, message)


def _private_names(tree: Tree) -> Iterator[Problem]:
    names = tree.of("private_property_identifier")
    declared = {tree.name(node) for node in names if node.field == "name"}
    for node in names:
        if tree.name(node) not in declared:
            yield Problem(node.start, f"{tree.name(node)} is declared in no class: declare it.")


def _escapes(tree: Tree) -> Iterator[Problem]:
    text = tree.source.text
    for node in tree.of("string"):
        for match in _ESCAPE.finditer(text, node.start, node.end):
            yield from _escape(match)
    for node in tree.of("escape_sequence"):  # of templates; tags may have any
        match = _ESCAPE.match(text, node.start)
        if match is not None and node.above.field != "arguments":
            yield from _escape(match)


def _escape(match: re.Match[str]) -> Iterator[Problem]:
    if match[1] is not None:
        message = "Octal escapes are not allowed: write \\x and two digits."
        yield Problem(match.start(), message)
    elif match[2] is not None:
        message = f"\\{match[2]} is not followed by what it needs: write \\\\ for a backslash."
        yield Problem(match.start(), message)
