"""Prototypes pass: access to inherited objects, and to the constructor that compiles text."""

from collections.abc import Iterator
from typing import Final

from pml_analysis.names.bindings import Binding
from pml_analysis.names.builtins import Builtins, is_prototype
from pml_analysis.names.origins import Origins
from pml_analysis.names.values import (
    AnyTool,
    CallByName,
    Constant,
    FromArguments,
    FromCall,
    FromTools,
    Origin,
)
from pml_analysis.syntax.literals import string_value
from pml_analysis.syntax.member_names import REFUSED_KEYS, how_by_id
from pml_analysis.syntax.node_kinds import FUNCTIONS, KEY_NAMES, MEMBERS
from pml_analysis.syntax.tree import Node
from pml_analysis.text.problems import Problem

_COMPARING: Final = frozenset({"==", "===", "!=", "!=="})
_CHANGING: Final = frozenset(
    {
        ("Object", "assign"),
        ("Object", "defineProperties"),
        ("Object", "defineProperty"),
        ("Reflect", "defineProperty"),
        ("Reflect", "deleteProperty"),
        ("Reflect", "set"),
    }
)
"""Functions that change their first argument."""

_OPENING: Final = frozenset(
    {
        ("Object", "defineProperty"),
        ("Object", "getOwnPropertyDescriptor"),
        ("Reflect", "defineProperty"),
        ("Reflect", "get"),
        ("Reflect", "getOwnPropertyDescriptor"),
        ("Reflect", "set"),
    }
)
"""Functions whose second argument is a key of the first."""

_TOOL_PATH: Final = 2
"""Length of the path of a tool in `mcp`."""

_UNCHANGEABLE: Final = (
    "prototype cannot be changed: other code relies on it; use a class of your own, or a function."
)
_SIGNS: Final = ("__", "constructor", "rototype", "\\")
"""Substrings of which every text contains one that writes such a key out."""

_METHODS: Final = frozenset(name for _, name in _CHANGING | _OPENING)


def prototype_accesses(origins: Origins, builtins: Builtins) -> Iterator[Problem]:
    """Return every visible access."""
    yield from _members(origins, builtins)
    yield from _parts(origins)
    yield from _own_keys(origins)
    yield from _changes(origins, builtins)
    yield from _calls(origins, builtins)


def _members(origins: Origins, builtins: Builtins) -> Iterator[Problem]:
    tree = origins.tree
    is_written = any(sign in tree.source.text for sign in _SIGNS)
    for member in tree.of(*MEMBERS) if is_written else tree.of("subscript_expression"):
        key = origins.key(member)
        if key == "prototype":
            call = member.above.parent
            if member.above.kind == "arguments" and call is not None:
                yield from _passed_prototypes(member, call, builtins)
        elif isinstance(key, str) and key in REFUSED_KEYS:
            operand = member.children[0]
            if key != "constructor" or not (
                _only_tests_type(member, origins) or _is_data(origins.of(operand), origins)
            ):
                yield _refused(member.children[-1], key, origins.of(operand))


def _only_tests_type(member: Node, origins: Origins) -> bool:
    """Whether it is `value.constructor.name` or `value.constructor === Map`: a test of a type that
    leads no further."""
    node, above = member, member.above
    while above.kind == "parenthesized_expression":
        node, above = above, above.above
    if above.kind in MEMBERS and above.operand is node:
        return origins.key(above) == "name"
    if above.kind == "binary_expression":
        return above["operator"].kind in _COMPARING
    return above.kind == "unary_expression" or above.kind == "switch_statement"


def _is_data(origin: Origin, origins: Origins) -> bool:
    """Whether a value is JSON, or a part of it: a tool's result, the caller's arguments."""
    match origin:
        case FromArguments(path=path):
            return "constructor" not in path
        case FromCall(call=call, path=path):
            callee = origins.of(call["function"])
            is_tool = isinstance(callee, FromTools | CallByName | AnyTool)
            return is_tool and "constructor" not in path
        case _:
            return False


def _passed_prototypes(member: Node, call: Node, builtins: Builtins) -> Iterator[Problem]:
    """Return prototypes of the language that are passed to a function of the program."""
    callee = call.child("function") or call.child("constructor")
    if callee is not None and builtins.path(callee) is None and builtins.path(member) is not None:
        message = "prototype cannot be passed on: other code relies on it; pass a value."
        yield Problem(member.children[-1].start, message)


def _parts(origins: Origins) -> Iterator[Problem]:
    """Return keys that destructuring opens."""
    scopes = origins.scopes
    found = [(binding.node, binding.parts) for binding in scopes.bindings]
    found += [(target.node, list(target.parts)) for target in scopes.member_writes]
    for node, parts in found:
        for part in parts:
            for step in part.path:
                if isinstance(step, str) and step in REFUSED_KEYS and step != "__proto__":
                    value = origins.of(part.value) if part.value is not None else None
                    if value is None or step != "constructor" or not _is_data(value, origins):
                        yield _refused(node, step)


def _own_keys(origins: Origins) -> Iterator[Problem]:
    """Return `__proto__` as a written key: in objects, classes and patterns."""
    tree = origins.tree
    if any(sign in tree.source.text for sign in _SIGNS):
        for node in tree.of(*KEY_NAMES):
            if node.above.kind not in MEMBERS and tree.name(node) == "__proto__":
                yield _refused(node, "__proto__")
        for node in tree.of("string"):
            if node.field in ("key", "name") and string_value(tree.text(node)) == "__proto__":
                yield _refused(node, "__proto__")
    for node in tree.of("computed_property_name"):
        written = node.children[0].inner
        key = _constant(written, origins)
        is_step = node.above.kind == "pair_pattern" and written.kind != "string"
        if key == "__proto__" or (is_step and key in REFUSED_KEYS):
            yield _refused(node, key)


def _changes(origins: Origins, builtins: Builtins) -> Iterator[Problem]:
    """Return writes to the language's own objects, and to prototypes of anything that is not the
    program's."""
    removed = [
        node["argument"].inner
        for node in origins.tree.of("unary_expression")
        if node["operator"].kind == "delete"
    ]
    for node in [*(target.node for target in origins.scopes.member_writes), *removed]:
        if node.kind in MEMBERS:
            yield from _change(node, origins, builtins)


def _change(target: Node, origins: Origins, builtins: Builtins) -> Iterator[Problem]:
    through: Node | None = None
    node = target
    while node.kind in MEMBERS:
        if origins.key(node) == "prototype":
            through = node
        node = node.children[0].inner
    is_others = through is not None and not _is_own(through.children[0].inner, origins)
    if is_others or is_prototype(builtins.path(target)):
        yield Problem((through or target).children[-1].start, _UNCHANGEABLE)


def _is_own(node: Node, origins: Origins) -> bool:
    """Whether it is a class or function of the program, under its declared name, or data."""
    if _is_data(origins.of(node), origins):
        return True
    binding = origins.scopes.binding(node) if node.kind == "identifier" else None
    if binding is None or len(binding.parts) != 1:
        return False
    return binding.kind in ("class", "function") or _is_made_here(binding)


def _is_made_here(binding: Binding) -> bool:
    value = binding.parts[0].value
    return value is not None and value.inner.kind in FUNCTIONS | {"class", "object"}


def _calls(origins: Origins, builtins: Builtins) -> Iterator[Problem]:
    """Return calls of the functions of `Object` and `Reflect` that work like members."""
    text = origins.tree.source.text
    if not any(sign in text for sign in ("Object", "Reflect", "\\")):
        return
    for call in origins.tree.of("call_expression"):
        callee, given = call["function"], call["arguments"]
        if given.kind != "arguments" or not _may_be(callee, origins):
            continue
        path = builtins.path(callee)
        first, second = [*given.children[:2], None, None][:2]
        if path in _CHANGING and first is not None and is_prototype(builtins.path(first)):
            yield Problem(first.start, _UNCHANGEABLE)
        key = _constant(second, origins) if path in _OPENING and second is not None else ""
        if second is not None and key in REFUSED_KEYS:
            yield _refused(second, key)


def _may_be(callee: Node, origins: Origins) -> bool:
    """Whether a callee may be one of these functions; a cheap test."""
    callee = callee.inner
    is_method = callee.kind in MEMBERS and origins.key(callee) in _METHODS
    return is_method or callee.kind == "identifier"


def _constant(node: Node, origins: Origins) -> str:
    """Return the constant text of an expression; an empty one if unknown."""
    value = origins.of(node)
    return value.value if isinstance(value, Constant) and isinstance(value.value, str) else ""


def _refused(node: Node, key: str, of: Origin | None = None) -> Problem:
    """Build the problem of a key; `of` is the origin of what it is a member of."""
    why = REFUSED_KEYS[key]
    if isinstance(of, FromTools) and len(of.path) < _TOOL_PATH:
        why = f"{why}; {how_by_id((*of.path, key))}"
    return Problem(node.start, f"{key} is not allowed: {why}.")
