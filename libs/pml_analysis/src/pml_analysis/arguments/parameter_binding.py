"""Parameter binding pass: the arguments that each invocation of a local function passes to its
parameters."""

from typing import Final, NamedTuple

from pml_analysis.names.bindings import Binding
from pml_analysis.names.callbacks import ELEMENT_OF, method_of
from pml_analysis.names.entries import entries, is_never_changed, is_plain
from pml_analysis.names.origins import Origins
from pml_analysis.names.values import Constant
from pml_analysis.structure.expansion import Expansion, Instance
from pml_analysis.syntax.node_kinds import CONTAINERS, FUNCTIONS, MEMBERS, WRAPPERS
from pml_analysis.syntax.patterns import Part, Path, Step, targets
from pml_analysis.syntax.tree import Node, Tree

_MAX_STEPS: Final = 100
_OPENING: Final = MEMBERS | WRAPPERS
_DEFINED: Final = CONTAINERS | FUNCTIONS | {"null", "template_string"}


class BoundArgument(NamedTuple):
    """An argument: an expression, the relevant part of its value, the instance that contains it,
    and the default used where that value is undefined, if it may be."""

    value: Node
    path: Path
    at: Instance
    default: Node | None = None


class ParameterBindings:
    """Maps an expression in one instance to the expression of a caller that it stands for."""

    def __init__(self, origins: Origins, expansion: Expansion) -> None:
        self._origins = origins
        self._expansion = expansion
        self._given: dict[int, dict[int, BoundArgument]] = {}
        tree = origins.tree
        self._are_arguments_used = any(
            tree.name(node) == "arguments" for node in origins.scopes.free
        )

    def argument(self, declared: Node, at: Instance) -> BoundArgument | None:
        """Return the argument of a parameter, by its declared name, for the invocation that enters
        the function; None where that is unknown, or the name is no parameter."""
        owner = self._expansion.enclosing(declared, at)
        known = self._given.get(owner.number)
        if known is None:
            known = self._given[owner.number] = self._bind(owner)
        return known.get(declared.index)

    def follow(self, node: Node, at: Instance) -> BoundArgument | None:
        """Return the outer expression that a parameter, or a part of one, stands for."""
        found: BoundArgument | None = None
        current = BoundArgument(node, (), at)
        for _ in range(_MAX_STEPS):
            following = self._step(current)
            if following is None:
                break
            found = current = following
        return found

    def _step(self, current: BoundArgument) -> BoundArgument | None:
        root, opened = self._opened(current.value)
        binding = self._origins.scopes.binding(root)
        given = None if binding is None else self.argument(binding.node, current.at)
        if binding is None or given is None or given.default is not None:
            return None
        rest = (*opened, *current.path)
        value, inside = self._picked(given.value, given.path)
        if value.inner.kind in CONTAINERS and not self._is_unchanged(binding, value, given):
            return (
                None
                if value is given.value
                else BoundArgument(given.value, given.path + rest, given.at)
            )
        if not inside:
            value, rest = self._picked(value, rest)
        return BoundArgument(value, (*inside, *rest), given.at)

    def _opened(self, node: Node) -> tuple[Node, Path]:
        """Split a chain of members into its head and its keys."""
        keys: list[Step] = []
        while node.kind in _OPENING and (inside := node.operand) is not None:
            if node.kind in MEMBERS:
                keys.append(self._origins.key(node))
            node = inside
        return node, tuple(reversed(keys))

    def _picked(self, node: Node, path: Path) -> tuple[Node, Path]:
        """Step into object literals, as long as each key occurs there once."""
        while path and is_plain(node.inner):
            listed = list(entries(self._origins, node))
            named = [entry for entry in listed if entry.key == path[0]]
            if len(named) != 1 or any(entry.key is None for entry in listed):
                break
            node, path = named[0].value, path[1:]
        return node, path

    def _bind(self, instance: Instance) -> dict[int, BoundArgument]:
        unit, place, caller = instance.unit, instance.place, instance.caller
        if unit is None or place is None or caller is None or not instance.is_invoked:
            return {}
        if instance.number in self._expansion.loops:  # recursive calls pass others
            return {}
        bound: dict[int, BoundArgument] = {}
        given = arguments_of(self._origins.tree, place)
        for position, (pattern, default) in enumerate(parameters_of(unit.function)):
            part = given[position] if position < len(given) else None
            if part is None and default is not None and _is_call_without(place, position):
                bound |= self._declared(pattern, Part(default), instance)
            elif part is not None and pattern.kind != "rest_pattern":
                default = None if self._is_defined(part) else default
                bound |= self._declared(pattern, part, caller, default)
        return bound

    def _is_defined(self, part: Part) -> bool:
        """Whether a value is certainly not undefined."""
        value = part.value.inner if part.value is not None and not part.path else None
        if value is None or value.kind in _DEFINED:
            return value is not None
        origin = self._origins.of(value)
        return isinstance(origin, Constant) and origin.value is not None

    def _declared(
        self, pattern: Node, part: Part, where: Instance, default: Node | None = None
    ) -> dict[int, BoundArgument]:
        """Map the declared names of a pattern to their arguments."""
        found: dict[int, BoundArgument] = {}
        for target in targets(self._origins.tree, pattern, (part,)):
            binding = self._origins.scopes.binding(target.node)
            given = target.parts[0]
            is_whole = len(target.parts) == 1  # else its own default may apply
            if (
                binding is not None
                and given.value is not None
                and is_whole
                and self._is_never_assigned(binding)
            ):
                found[target.node.index] = BoundArgument(given.value, given.path, where, default)
        return found

    def _is_never_assigned(self, binding: Binding) -> bool:
        """Whether a name keeps its argument: neither it nor a `var` of its name is assigned."""
        is_written = any(use.index in self._origins.scopes.written for use in binding.uses)
        return not is_written and sum(not part.is_default for part in binding.parts) == 1

    def _is_unchanged(self, binding: Binding, value: Node, given: BoundArgument) -> bool:
        """Whether the object or list that a name holds is never changed, under any name."""
        is_rest = binding.node.above.kind == "rest_pattern"
        has_others = bool(given.path) or is_rest or self._are_arguments_used
        return not has_others and is_never_changed(self._origins, binding, value.inner)


def parameters_of(function: Node) -> list[tuple[Node, Node | None]]:
    """Return patterns and default values."""
    single, several = function.child("parameter"), function.child("parameters")
    if single is not None:
        return [(single, None)]
    found = several.children if several is not None else []
    return [(one["pattern"], one.child("value")) for one in found if one.child("pattern")]


def arguments_of(tree: Tree, place: Node) -> list[Part | None]:
    """Return the arguments that a call passes, or a method passes to its callback; None for unknown
    ones."""
    if place.kind != "call_expression":
        return [_first_argument(tree, place)]
    given: list[Part | None] = []
    for node in place["arguments"].children if place["arguments"].kind == "arguments" else ():
        if node.kind == "spread_element":
            break
        given.append(None if node.inner.kind == "undefined" else Part(node))
    return given


def _is_call_without(place: Node, position: int) -> bool:
    """Whether a call certainly passes nothing in this position."""
    if place.kind != "call_expression" or place["arguments"].kind != "arguments":
        return False
    given = place["arguments"].children
    return len(given) <= position and not any(node.kind == "spread_element" for node in given)


def _first_argument(tree: Tree, callback: Node) -> Part | None:
    """Return the first argument that a method passes to a callback given by name: an element of its
    list, or the resolved value of its promise."""
    call = _receiving_call(callback)
    owner = call["function"]["object"]
    if gets_element(tree, callback):
        return Part(owner, (None,))
    return Part(owner) if method_of(tree, call) == "then" else None


def gets_element(tree: Tree, callback: Node) -> bool:
    """Whether a method passes the elements of its list to a callback given by name."""
    return method_of(tree, _receiving_call(callback)) in ELEMENT_OF


def _receiving_call(value: Node) -> Node:
    while value.above.kind in WRAPPERS:
        value = value.above
    return value.above.above
