"""Parameter uses pass: every name that holds a part of the caller's arguments."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pml_analysis.arguments.parameter_binding import arguments_of, parameters_of
from pml_analysis.arguments.parameter_paths import parameter_path
from pml_analysis.names.bindings import Binding, Scopes
from pml_analysis.names.origins import Origins
from pml_analysis.structure.units import Unit
from pml_analysis.syntax.node_kinds import INLINE_FUNCTIONS, MEMBERS, WRAPPERS
from pml_analysis.syntax.patterns import Part, Path, Step, targets
from pml_analysis.syntax.tree import Node

SAME_VALUE: Final = WRAPPERS | {"await_expression"}
"""Kinds whose value is that of the expression inside them, once awaited."""

_ROUNDS: Final = 4
"""Through how many forwarding functions a value is followed."""

MAX_PATH: Final = 30
_MAX_PATHS: Final = 8


class ParameterUses:
    """Maps expressions to the parts of the caller's arguments that they are; `units` are the local
    functions, whose parameters may be such parts too."""

    def __init__(self, origins: Origins, units: Sequence[Unit]) -> None:
        self.origins = origins
        self._forwarded: dict[int, dict[Path, None]] = {}
        """By the parameter's name, where it is declared."""

        self.forwarded: dict[tuple[Node, Path], None] = {}
        """Patterns of functions' parameters with the parts that they get, in order."""

        calls = [(unit.function, entry) for unit in units for entry in unit.entries]
        calls += _called_where_written(origins)
        self._followed = {entry.index for function, entry in calls if not _collects(function)}
        outer = [
            (function, entry)
            for function, entry in calls
            if not function.index <= entry.index < function.stop
        ]
        known = -1
        for _ in range(_ROUNDS):
            for function, entry in outer:
                self._forward(function, entry)
            before, known = known, sum(map(len, self._forwarded.values()))
            if known == before:
                break

    def __iter__(self) -> Iterator[tuple[Node, Path]]:
        """Yield every identifier, declared or used, that is a part of the arguments."""
        scopes = self.origins.scopes
        for node in scopes.free:
            path = parameter_path(self.origins, node)
            if path is not None:
                yield node, path
        for binding in scopes.bindings:
            for path in self._paths(binding):
                for node in (binding.node, *binding.uses):
                    yield node, path

    def paths(self, node: Node) -> Iterable[Path]:
        """Return the parts that an expression may be; a default for it left aside."""
        path = parameter_path(self.origins, node)
        if path is not None:
            return [path]
        keys: list[Step] = []
        while node.kind in MEMBERS | SAME_VALUE and node.operand is not None:
            if node.kind in MEMBERS:
                keys.append(self.origins.key(node))
            node = node.operand
        binding = self.origins.scopes.binding(node)
        known = self._forwarded.get(binding.node.index, ()) if binding is not None else ()
        return [(*path, *reversed(keys)) for path in known]

    def all_known(self) -> bool:
        """Whether all used parts of the arguments are known: never all of them at once."""
        scopes = self.origins.scopes
        return all(
            path or _declares(scopes, node) or self._is_opened(outermost(node))
            for node, path in self
        )

    def _is_opened(self, whole: Node) -> bool:
        above = whole.above
        if above.kind in MEMBERS and above.operand is whole:
            return self.origins.key(above) is not None
        is_followed = above.kind == "arguments" and above.above.index in self._followed
        return is_followed or above.kind == "variable_declarator"

    def _paths(self, binding: Binding) -> Iterable[Path]:
        path = parameter_path(self.origins, binding.node)
        return self._forwarded.get(binding.node.index, ()) if path is None else [path]

    def _forward(self, function: Node, entry: Node) -> None:
        given = arguments_of(self.origins.tree, entry)
        for (pattern, _), part in zip(parameters_of(function), given, strict=False):
            if part is not None and part.value is not None and pattern.kind != "rest_pattern":
                for path in self.paths(part.value):
                    whole = (*path, *part.path)
                    self._note(pattern, Part(part.value, whole))
                    self.forwarded[pattern, whole] = None

    def _note(self, pattern: Node, part: Part) -> None:
        for target in targets(self.origins.tree, pattern, (part,)):
            binding = self.origins.scopes.binding(target.node)
            path = target.parts[0].path
            if binding is not None and len(path) <= MAX_PATH:
                known = self._forwarded.setdefault(binding.node.index, {})
                if len(known) < _MAX_PATHS:
                    known[path] = None


def outermost(node: Node) -> Node:
    """Return the widest expression with the value of this one."""
    while node.above.kind in SAME_VALUE:
        node = node.above
    return node


def _declares(scopes: Scopes, node: Node) -> bool:
    binding = scopes.binding(node)
    return binding is not None and binding.node is node


def _collects(function: Node) -> bool:
    return any(pattern.kind == "rest_pattern" for pattern, _ in parameters_of(function))


def _called_where_written(origins: Origins) -> list[tuple[Node, Node]]:
    """Yield `(async ({ path }) => …)(args)`: functions and the calls of them."""
    calls = [(call["function"].inner, call) for call in origins.tree.of("call_expression")]
    return [(function, call) for function, call in calls if function.kind in INLINE_FUNCTIONS]
