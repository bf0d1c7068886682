"""Programs made from real TypeScript files: bodies of functions, some of whose calls call tools.

Syntax that a program must not contain is rewritten (imports become declared names, exports lose
their word, forbidden names get others); the callees of its calls, a part of them, are replaced by
every form in which a tool can be reached. The same file gives the same program every time.
"""

import re
from collections.abc import Callable
from typing import Final
from zlib import crc32

from tree_sitter import Node

from pml_analysis.names.globals import FORBIDDEN, GLOBALS
from services.analyzer.tests.support.tool_calls import CALLEES, HOLDING, PROLOGUE, parse, text_of

_BY_NAME: Final = ("db:t0", "git:t1", "cap:zz:one", "cap:zz_two")
_LEFT_AS_THEY_ARE: Final = 40  # of 100 calls
_STRUCTURAL: Final = {
    *("all", "allSettled", "any", "catch", "every", "filter", "find", "finally", "flatMap"),
    *("forEach", "map", "race", "reduce", "some", "then"),
}
"""Methods whose calls shape the structure: they keep their names."""

_RENAMED: Final = {*FORBIDDEN, "mcp", "capabilities", "args", "context"}
_KEYS: Final = frozenset(
    {
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "__proto__",
        "constructor",
        "prototype",
        "setPrototypeOf",
    }
)
_KEYED: Final = frozenset({"member_expression", "pair", "pair_pattern"})
_IMPORTED_TYPE = re.compile(r"""(?<!await )(?<![\w.])import\((["'])[^"'\n]*\1\)(?=\.\w)""")
_USING = re.compile(r"(?:\bawait +)?\busing +(?=\w+ =)")
_TYPE_OF_IMPORT = re.compile(r"""\btypeof import\((["'])[^"'\n]*\1\)""")


def rewritten(text: str) -> str:
    """Return the program made from one file."""
    text = _TYPE_OF_IMPORT.sub("typeof imported", _IMPORTED_TYPE.sub("imported", text))
    text = _USING.sub("const ", text)
    return _Rewriter(text).program()


class _Rewriter:
    def __init__(self, text: str) -> None:
        self._bytes = text.encode()
        self._root = parse(text)
        self._imported: dict[str, None] = {}
        self._called: dict[str, None] = {}
        self._calls = 0
        self._rules: dict[str, Callable[[Node], str]] = {
            "ambient_declaration": _nothing,
            "call_expression": self._call,
            "decorator": _nothing,
            "export_statement": self._export,
            "extends_clause": self._extends,
            "hash_bang_line": _nothing,
            "html_comment": _nothing,
            "identifier": self._identifier,
            "import_alias": self._import,
            "import_statement": self._import,
            "internal_module": self._namespace,
            "meta_property": self._meta,
            "module": _nothing,
            "new_expression": self._new,
            "property_identifier": _key,
            "shorthand_property_identifier": self._shorthand,
            "shorthand_property_identifier_pattern": self._shorthand,
            "string": _quoted,
        }

    def program(self) -> str:
        """Return the whole program."""
        body = self._inside(self._root)
        declared = {*_declared_on_top(self._root), *GLOBALS}
        names = [name for name in {**self._imported, **self._called} if name not in declared]
        bound = f"let {', '.join(f'{name}: any' for name in names)};" if names else ""
        return f"{PROLOGUE} {bound}\n{body}"

    def _render(self, node: Node) -> str:
        rule = self._rules.get(node.type)
        return rule(node) if rule is not None else self._inside(node)

    def _inside(self, node: Node) -> str:
        """Return the node's own text, its children rewritten."""
        if not node.child_count:
            return text_of(node)
        pieces: list[str] = []
        at = node.start_byte
        for child in node.children:
            pieces += (self._bytes[at : child.start_byte].decode(), self._render(child))
            at = child.end_byte
        return "".join([*pieces, self._bytes[at : node.end_byte].decode()])

    def _import(self, node: Node) -> str:
        if any(child.type == "type" for child in node.children):
            return ""
        for name in _imported_names(node):
            self._imported[_free_of_harm(name)] = None
        return ";"

    def _export(self, node: Node) -> str:
        declaration = node.child_by_field_name("declaration")
        value = node.child_by_field_name("value")
        if declaration is not None:
            return self._render(declaration)
        if value is not None:
            return f"void ({self._render(value)});"
        return ";"

    def _namespace(self, node: Node) -> str:
        body = node.child_by_field_name("body")
        return f";{self._render(body)}" if body is not None else ";"

    def _identifier(self, node: Node) -> str:
        return _free_of_harm(text_of(node))

    def _shorthand(self, node: Node) -> str:
        name = text_of(node)
        other = _free_of_harm(name)
        return name if name == other else f"{name}: {other}"

    def _meta(self, node: Node) -> str:
        return "args.meta" if text_of(node).startswith("import") else text_of(node)

    def _new(self, node: Node) -> str:
        self._note(node.child_by_field_name("constructor"))
        return self._inside(node)

    def _extends(self, node: Node) -> str:
        self._note(node.child_by_field_name("value"))
        return self._inside(node)

    def _note(self, callee: Node | None) -> None:
        """Record that a called name needs a declaration."""
        if callee is not None and callee.type == "identifier":
            self._called[_free_of_harm(text_of(callee))] = None

    def _call(self, node: Node) -> str:
        callee = node.child_by_field_name("function")
        assert callee is not None
        self._calls += 1
        chance = crc32(f"{self._calls} {text_of(callee)}".encode())
        if callee.type == "import":
            return self._called_otherwise(node, callee, "mcp.fs.t0")
        is_kept = callee.type == "super" or _method(callee) in _STRUCTURAL
        if is_kept or chance % 100 < _LEFT_AS_THEY_ARE:
            self._note(callee)
            return self._inside(node)
        if chance % 7 == 0:
            return f'mcp.call("{_BY_NAME[chance % len(_BY_NAME)]}", {{ v: {self._plain(node)} }})'
        form = CALLEES[chance // 100 % len(CALLEES)]
        if _is_tagged(node) or any(inner.type in HOLDING for inner in _subtree(callee)):
            return f"{form}({{ v: {self._plain(node)} }})"
        return self._called_otherwise(node, callee, form)

    def _plain(self, call: Node) -> str:
        self._note(call.child_by_field_name("function"))
        return self._inside(call)

    def _called_otherwise(self, call: Node, callee: Node, form: str) -> str:
        """Return the call with another callee."""
        pieces = [form]
        at = callee.end_byte
        for child in call.children[1:]:
            pieces += (self._bytes[at : child.start_byte].decode(), self._render(child))
            at = child.end_byte
        return "".join(pieces)


def _nothing(_: Node) -> str:
    return ""


def _key(node: Node) -> str:
    name, place = text_of(node), node.parent
    is_harmful = name in _KEYS and place is not None and place.type in _KEYED
    return f"{name}_" if is_harmful else name


def _quoted(node: Node) -> str:
    text = text_of(node)
    return f"{text[:-1]}_{text[-1]}" if text[1:-1] in _KEYS else text


def _free_of_harm(name: str) -> str:
    return f"x_{name}" if name in _RENAMED or name.startswith("__pml") else name


def _is_tagged(call: Node) -> bool:
    return call.children[-1].type == "template_string"


def _method(callee: Node) -> str:
    return text_of(callee.child_by_field_name("property"))


def _subtree(root: Node) -> list[Node]:
    found = [root]
    for node in found:
        found.extend(node.children)
    return found


def _imported_names(statement: Node) -> list[str]:
    names: list[str] = []
    for node in _subtree(statement):
        if node.type == "import_specifier":
            if node.children[0].type != "type":
                names.append(text_of(node.child_by_field_name("alias") or node.named_children[0]))
        elif node.type in ("import_clause", "namespace_import", "import_require_clause"):
            names += [text_of(child) for child in node.children if child.type == "identifier"]
        elif node.type == "import_alias":
            names.append(text_of(node.named_children[0]))
    return names


def _declared_on_top(root: Node) -> set[str]:
    """Return the names that top-level statements declare."""
    names: set[str] = set()
    waiting = list(root.children)
    while waiting:
        node = waiting.pop()
        if node.type in ("export_statement", "lexical_declaration", "variable_declaration"):
            waiting.extend(node.named_children)
        elif node.type == "variable_declarator":
            names |= {_free_of_harm(text_of(name)) for name in _names_in(node.named_children[0])}
        elif node.type.endswith("_declaration"):
            names.add(_free_of_harm(text_of(node.child_by_field_name("name"))))
    return names


def _names_in(pattern: Node) -> list[Node]:
    kinds = ("identifier", "shorthand_property_identifier_pattern")
    return [node for node in _subtree(pattern) if node.type in kinds]
