"""Data flow: the calls that an expression's value is computed from."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from pml_analysis.arguments.parameter_binding import ParameterBindings
from pml_analysis.arguments.roots import awaited_element
from pml_analysis.names.bindings import Binding, Scopes
from pml_analysis.names.origins import Origins
from pml_analysis.names.values import FromCall
from pml_analysis.structure.expansion import Expansion, Instance
from pml_analysis.syntax.node_kinds import FUNCTIONS
from pml_analysis.syntax.patterns import Part, Path
from pml_analysis.syntax.tree import Node, Tree

_ADDING: Final = frozenset({"add", "append", "push", "set", "splice", "unshift"})
"""Methods that put their arguments into their receiver."""

_MAX_VALUES: Final = 256
_MAX_STEPS: Final = 100

Place = tuple[Node, Instance]


class DataFlow:
    """Finds the calls that produce a value, in one instance of the function that contains it."""

    def __init__(
        self, origins: Origins, expansion: Expansion, parameter_bindings: ParameterBindings
    ) -> None:
        self._origins = origins
        self._tree = origins.tree
        self._scopes = origins.scopes
        self._expansion = expansion
        self._bindings = parameter_bindings
        self._known: dict[tuple[int, int], list[str]] = {}
        self._scanned: dict[tuple[int, int], tuple[list[str], list[Place]]] = {}
        self._held: dict[tuple[int, int], list[Place]] = {}
        self._results_of: dict[tuple[int, int], tuple[str, Path] | None] = {}
        self._added = _additions(self._tree, self._scopes)
        whole = self._tree.of("call_expression", *FUNCTIONS)
        self._sources = sorted([*self._scopes.by_identifier, *(node.index for node in whole)])
        """Indexes of all syntax that a value can come from."""
        self._returned: dict[int, list[Node]] | None = None

    def producers(self, node: Node, at: Instance) -> list[str]:
        """Return the node ids of the calls whose results flow in, in the order they are met.

        Names are followed through a bounded number of other names, so that time stays linear.
        """
        key = self._same_as(node, at)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._follow(node, at)
        return known

    def _same_as(self, node: Node, at: Instance) -> tuple[int, int]:
        """Return a cache key shared by expressions with the same producers: those of one name
        alone."""
        first = bisect_left(self._sources, node.index)
        inside = [index for index in self._sources[first : first + 2] if index < node.stop]
        if len(inside) != 1 or (inside[0], at.number) in self._expansion.entered:
            return node.index, at.number
        binding = self._scopes.binding(self._tree.nodes[inside[0]])
        return (node if binding is None else binding.node).index, at.number

    def exact(self, node: Node, at: Instance) -> tuple[str, Path] | None:
        """Return the one call that a value is the result of, and the part of that result."""
        key = (node.index, at.number)
        if key not in self._results_of:
            self._results_of[key] = self._exact(node, at)
        return self._results_of[key]

    def _exact(self, value: Node, at: Instance) -> tuple[str, Path] | None:
        path: Path = ()
        for _ in range(_MAX_STEPS):
            origin = self._origins.part(Part(value, path))
            if not isinstance(origin, FromCall):
                return None
            at = self._expansion.enclosing(origin.call, at)
            task = self._task(origin.call.index, at)
            if task is not None:
                return task, origin.path
            entered = self._expansion.entered.get((origin.call.index, at.number))
            if entered is None or entered.unit is None:
                value, path = awaited_element(self._tree, origin.call, origin.path)
                if value is origin.call:
                    return None
                continue
            results = self._results(entered.unit.function)
            if len(results) != 1:
                return None
            value, path, at = results[0], origin.path, entered
        return None

    def _task(self, call: int, at: Instance) -> str | None:
        """Return the task of a call; None for a call that makes a loop or a fork, or nothing."""
        node_id = self._expansion.ids.get((call, at.number), "")
        return node_id if node_id.startswith("n") else None

    def _follow(self, node: Node, at: Instance) -> list[str]:
        found: dict[str, None] = {}
        seen: set[tuple[int, int]] = set()
        waiting = deque([(node, at)])
        while waiting and len(seen) <= _MAX_VALUES:
            tasks, more = self._scan(*waiting.popleft())
            if tasks:
                found.update(dict.fromkeys(tasks))
            for value, where in more:
                key = (value.index, where.number)
                if key not in seen:
                    seen.add(key)
                    waiting.append((value, where))
        return list(found)

    def _scan(self, node: Node, at: Instance) -> tuple[list[str], list[Place]]:
        """Scan an expression for calls and the values of its names; the arguments of a call flow
        into it, not further."""
        key = (node.index, at.number)
        known = self._scanned.get(key)
        if known is None:
            known = self._scanned[key] = self._read(node, at)
        return known

    def _read(self, root: Node, at: Instance) -> tuple[list[str], list[Place]]:
        tasks: list[str] = []
        values: list[Place] = []
        sources, ids, entered_at = self._sources, self._expansion.ids, self._expansion.entered
        bindings, number, following = self._scopes.by_identifier, at.number, 0
        seen: set[Binding] = set()
        for index in sources[bisect_left(sources, root.index) : bisect_left(sources, root.stop)]:
            if index < following:
                continue
            key = (index, number)
            task, entered = ids.get(key), entered_at.get(key)
            if task is not None and task.startswith("n"):
                tasks.append(task)
                following = self._tree.nodes[index].stop
            elif entered is not None and entered.unit is not None:
                values += ((value, entered) for value in self._results(entered.unit.function))
                following = self._tree.nodes[index].stop
            elif index in bindings and bindings[index] not in seen:
                seen.add(bindings[index])
                values += self._values(bindings[index], at)
        return tasks, values

    def _values(self, binding: Binding, at: Instance) -> list[Place]:
        """Return the possible values of a name; each once for all uses in an instance."""
        key = (binding.node.index, at.number)
        known = self._held.get(key)
        if known is None:
            known = self._held[key] = list(self._find_values(binding, at))
        return known

    def _find_values(self, binding: Binding, at: Instance) -> Iterator[Place]:
        where = self._expansion.enclosing(binding.node, at)
        given = self._bindings.argument(binding.node, at)
        if given is not None:
            yield awaited_element(self._tree, given.value, given.path)[0], given.at
        else:
            for part in binding.parts:
                if part.value is not None:
                    yield awaited_element(self._tree, part.value, part.path)[0], where
        for value in self._added.get(binding.node.index, ()):
            yield value, self._expansion.enclosing(value, at)

    def _results(self, function: Node) -> list[Node]:
        """Return the possible results of a local function."""
        if self._returned is None:
            self._returned = _returns(self._tree)
        body = function.child("body")
        is_value = body is not None and body.kind != "statement_block"
        return [body] if is_value and body is not None else self._returned.get(function.index, [])


def _returns(tree: Tree) -> dict[int, list[Node]]:
    """Group returned expressions by their function."""
    found: dict[int, list[Node]] = {}
    for statement in tree.of("return_statement"):
        above = statement.parent
        while above is not None and above.kind not in FUNCTIONS:
            above = above.parent
        if above is not None and statement.operand is not None:
            found.setdefault(above.index, []).append(statement.operand)
    return found


def _additions(tree: Tree, scopes: Scopes) -> dict[int, list[Node]]:
    """Map each binding to the values that `list.push(value)` and `object.key = value` add to it."""
    added: dict[int, list[Node]] = {}

    def note(owner: Node | None, values: Iterable[Node]) -> None:
        binding = scopes.binding(owner.inner) if owner is not None else None
        if binding is not None:
            added.setdefault(binding.node.index, []).extend(values)

    for call in tree.of("call_expression"):
        callee = call["function"]
        method = callee.child("property")
        if method is not None and tree.name(method) in _ADDING:
            note(callee.operand, call["arguments"].children)
    for target in scopes.member_writes:
        values = (part.value for part in target.parts if part.value is not None)
        note(target.node.operand, values)
    return added
