"""Data flow: which calls an expression's value is made from."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from pml_analyzer.domain.bindings import Binding, Scopes
from pml_analyzer.syntax.tree import Node, Tree

_ADDING = frozenset({"add", "append", "push", "set", "splice", "unshift"})
"""Methods that put their arguments into the object they belong to."""

_MOST_NAMES = 256


class DataFlow:
    """Answers `producers(expression)` for one program; `tasks` are node ids by syntax index."""

    def __init__(self, tree: Tree, scopes: Scopes, tasks: Mapping[int, str]) -> None:
        self._tree = tree
        self._scopes = scopes
        self._tasks = tasks
        self._known: dict[int, list[str]] = {}
        self._direct: dict[int, tuple[list[str], list[Binding]]] = {}
        self._added = _additions(tree, scopes)

    def producers(self, node: Node) -> list[str]:
        """Node ids of the calls whose results flow in, in the order they are met.

        Names are followed through other names up to a number of them, so that time stays linear.
        """
        known = self._known.get(node.index)
        if known is None:
            known = self._known[node.index] = self._follow(node)
        return known

    def _follow(self, node: Node) -> list[str]:
        tasks, names = self._scan([node])
        found = dict.fromkeys(tasks)
        seen = {binding.node.index for binding in names}
        waiting = deque(names)
        while waiting and len(seen) <= _MOST_NAMES:
            more_tasks, more_names = self._of(waiting.popleft())
            found.update(dict.fromkeys(more_tasks))
            fresh = [binding for binding in more_names if binding.node.index not in seen]
            seen.update(binding.node.index for binding in fresh)
            waiting.extend(fresh)
        return list(found)

    def _of(self, binding: Binding) -> tuple[list[str], list[Binding]]:
        at = binding.node.index
        if at not in self._direct:
            values = [part.value for part in binding.parts if part.value is not None]
            self._direct[at] = self._scan([*values, *self._added.get(at, ())])
        return self._direct[at]

    def _scan(self, nodes: Iterable[Node]) -> tuple[list[str], list[Binding]]:
        """Calls and names in expressions; what a call is given flows into it, not further."""
        tasks: list[str] = []
        names: dict[int, Binding] = {}
        for node in _outside_of(self._tasks, self._tree, nodes):
            task = self._tasks.get(node.index)
            binding = None if task is not None else self._scopes.binding(node)
            if task is not None:
                tasks.append(task)
            elif binding is not None:
                names[binding.node.index] = binding
        return tasks, list(names.values())


def _outside_of(tasks: Mapping[int, str], tree: Tree, roots: Iterable[Node]) -> Iterator[Node]:
    """All nodes of some subtrees but those inside a task."""
    for root in roots:
        index = root.index
        while index < root.stop:
            node = tree.nodes[index]
            yield node
            index = node.stop if index in tasks else index + 1


def _additions(tree: Tree, scopes: Scopes) -> dict[int, list[Node]]:
    """By binding: what `list.push(value)` and `object.key = value` put into its value."""
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
