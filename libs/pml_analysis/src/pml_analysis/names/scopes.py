"""Scopes pass: the binding of each identifier, and every value a binding may get."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from pml_analysis.names.bindings import Binding, BindingKind, Scopes
from pml_analysis.names.callbacks import given_to
from pml_analysis.names.hoisting import may_be_unset
from pml_analysis.syntax.node_kinds import BINDING_NAMES, CLASSES, FUNCTIONS, SCOPE_BLOCKS
from pml_analysis.syntax.patterns import Part, Target, targets
from pml_analysis.syntax.tree import Node, Tree

_LEXICAL = frozenset({"let", "const", "class"})
_VAR_HOLDERS = FUNCTIONS | {"class_static_block"}
_DEFAULTING = frozenset({"&&=", "||=", "??="})
"""Assignments whose result is either the old or the new value, not computed from both."""

_UNKNOWN = Part(None)


@dataclass(slots=True, eq=False)
class _Scope:
    node: Node
    parent: "_Scope | None"
    holds_var: bool
    names: dict[str, Binding] = field(default_factory=dict[str, Binding])


def resolve_scopes(tree: Tree) -> Scopes:
    """Declare everything (hoisted names included), then resolve every identifier."""
    return _Resolver(tree).resolve()


class _Resolver:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._scope = _Scope(tree.root, None, holds_var=True)
        self._top = self._scope
        self._bindings: list[Binding] = []
        self._binding_of: dict[int, Binding] = {}
        self._uses: list[tuple[Node, _Scope]] = []
        self._writes: list[Target] = []
        self._member_writes: list[Target] = []
        self._redeclared: list[Node] = []
        self._variables: list[tuple[Node, Binding]] = []
        """Declarations with `var`."""

    def resolve(self) -> Scopes:
        visitors = self._VISITORS
        for node in self._tree.nodes:
            kind = node.kind
            if kind in visitors:
                while node.index >= self._scope.node.stop and self._scope.parent is not None:
                    self._scope = self._scope.parent
                visitors[kind](self, node)
        free = [node for node, scope in self._uses if not self._look_up(node, scope)]
        for declarator, binding in self._variables:
            binding.starts_absent |= may_be_unset(declarator, binding)
        return Scopes(
            bindings=self._bindings,
            free=free,
            free_writes=[target.node for target in self._writes if not self._write(target)],
            written={target.node.index for target in self._writes},
            member_writes=self._member_writes,
            redeclared=self._redeclared,
            top=self._top.names,
            by_identifier=self._binding_of,
        )

    def _look_up(self, node: Node, scope: _Scope | None) -> bool:
        name = self._tree.name(node)
        while scope is not None:
            binding = scope.names.get(name)
            if binding is not None:
                self._binding_of[node.index] = binding
                binding.uses.append(node)
                return True
            scope = scope.parent
        return False

    def _write(self, target: Target) -> bool:
        binding = self._binding_of.get(target.node.index)
        if binding is None:
            return False
        binding.parts.extend(target.parts)
        return True

    def _enter(self, node: Node) -> None:
        holder = self._scope.node.kind in _VAR_HOLDERS and node.kind == "statement_block"
        self._scope = _Scope(node, self._scope, holds_var=holder)

    def _use(self, node: Node) -> None:
        if node.index not in self._binding_of:
            self._uses.append((node, self._scope))

    def _declare(
        self, node: Node, kind: BindingKind, parts: tuple[Part, ...], scope: _Scope
    ) -> None:
        name = self._tree.name(node)
        binding = scope.names.get(name)
        if binding is None:
            binding = Binding(name, kind, node)
            self._bindings.append(binding)
            scope.names[name] = binding
        elif kind in _LEXICAL or binding.kind in _LEXICAL:
            self._redeclared.append(node)
        binding.parts.extend(parts)
        self._binding_of[node.index] = binding

    def _declare_pattern(
        self, pattern: Node, kind: BindingKind, parts: tuple[Part, ...], scope: _Scope
    ) -> None:
        if pattern.kind == "identifier":
            self._declare(pattern, kind, parts, scope)
            return
        for target in self._names(pattern, parts):
            self._declare(target.node, kind, target.parts, scope)

    def _names(self, pattern: Node, parts: tuple[Part, ...]) -> list[Target]:
        found = targets(self._tree, pattern, parts)
        return [target for target in found if target.node.kind in BINDING_NAMES]

    def _declare_var(self, target: Target) -> None:
        """Declare a `var` in the body of its function, or merge it with the parameter of the same
        name; `catch (e) { var e = 1 }` writes to both."""
        name, scope = self._tree.name(target.node), self._scope
        while not scope.holds_var:
            if name in scope.names:
                scope.names[name].parts.extend(target.parts)
            scope = scope.parent or self._top
        outer = scope.parent
        is_parameter = outer is not None and outer.node.kind in FUNCTIONS and name in outer.names
        holder = outer if is_parameter and outer is not None else scope
        self._declare(target.node, "var", target.parts, holder)

    def _declare_variables(self, pattern: Node, kind: str, parts: tuple[Part, ...]) -> None:
        if kind == "let" or kind == "const":
            self._declare_pattern(pattern, kind, parts, self._scope)
            return
        for target in self._names(pattern, parts):
            self._declare_var(target)

    def _variable(self, node: Node) -> None:
        name, value, kind = node["name"], node.child("value"), node.above.child("kind")
        self._declare_variables(
            name, kind.kind if kind else "var", () if value is None else (Part(value),)
        )
        if name.kind == "identifier":
            binding = self._binding_of[name.index]
            binding.starts_absent |= value is None
            if binding.kind == "var":
                self._variables.append((node, binding))

    def _for_in(self, node: Node) -> None:
        self._enter(node)
        kind, is_of = node.child("kind"), node["operator"].kind == "of"
        parts = (Part(node["right"], (None,)) if is_of else _UNKNOWN,)
        if kind is not None:
            self._declare_variables(node["left"], kind.kind, parts)
        else:
            self._assign(node["left"], parts)

    def _catch(self, node: Node) -> None:
        self._enter(node)
        parameter = node.child("parameter")
        if parameter is not None:
            self._declare_pattern(parameter, "other", (_UNKNOWN,), self._scope)

    def _enum(self, node: Node) -> None:
        self._declare(node["name"], "other", (_UNKNOWN,), self._scope)

    def _class(self, node: Node) -> None:
        self._named(node, "class", _UNKNOWN, declared=node.kind != "class")

    def _function(self, node: Node) -> None:
        if node.kind == "method_definition":
            self._enter(node)
        else:
            declared = node.kind.endswith("_declaration")
            self._named(node, "function", Part(node), declared=declared)
        given = given_to(self._tree, node)
        single, several = node.child("parameter"), node.child("parameters")
        if single is not None:
            self._declare(single, "parameter", (given,), self._scope)
        for position in several.children if several is not None else ():
            self._parameter(position, given)
            given = _UNKNOWN

    def _named(self, node: Node, kind: BindingKind, part: Part, *, declared: bool) -> None:
        """Enter a function or class; a declaration is named in the outer scope, an expression
        inside itself."""
        name = node.child("name")
        if name is not None and declared:
            self._declare(name, kind, (part,), self._scope)
        self._enter(node)
        if name is not None and not declared:
            self._declare(name, kind, (part,), self._scope)

    def _parameter(self, position: Node, given: Part) -> None:
        value = position.child("value")
        parts = (given,) if value is None else (given, Part(value, is_default=True))
        self._declare_pattern(position["pattern"], "parameter", parts, self._scope)

    def _assignment(self, node: Node) -> None:
        self._assign(node["left"], (Part(node["right"]),))

    def _augmented(self, node: Node) -> None:
        old = () if node["operator"].kind in _DEFAULTING else (_UNKNOWN,)
        self._assign(node["left"], (*old, Part(node["right"])))

    def _update(self, node: Node) -> None:
        self._assign(node["argument"], (_UNKNOWN,))

    def _assign(self, pattern: Node, parts: tuple[Part, ...]) -> None:
        for target in targets(self._tree, pattern, parts):
            is_name = target.node.kind in BINDING_NAMES
            (self._writes if is_name else self._member_writes).append(target)

    _VISITORS: ClassVar[dict[str, Callable[["_Resolver", Node], None]]] = {
        "identifier": _use,
        "shorthand_property_identifier": _use,
        "shorthand_property_identifier_pattern": _use,
        "variable_declarator": _variable,
        "class_static_block": _enter,
        "enum_declaration": _enum,
        "assignment_expression": _assignment,
        "augmented_assignment_expression": _augmented,
        "update_expression": _update,
        **dict.fromkeys(FUNCTIONS, _function),
        **dict.fromkeys(CLASSES, _class),
        **dict.fromkeys(SCOPE_BLOCKS, _enter),
        "for_in_statement": _for_in,
        "catch_clause": _catch,
    }
