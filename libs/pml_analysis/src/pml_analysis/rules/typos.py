"""Typos pass: undeclared names that nearly are a declared one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from typing import Final

from pml_analysis.names.bindings import Binding
from pml_analysis.names.globals import GLOBALS
from pml_analysis.names.origins import Origins
from pml_analysis.text.problems import Problem

_ROOTS: Final = ("args", "capabilities", "context", "mcp")
_MIN_LENGTH: Final = 4
_MAX_LENGTH: Final = 40
_MAX_NAMES: Final = 2_000
"""Number of names beyond which none are compared: generated code."""

_OWN: Final = frozenset({"class", "const", "function", "let"})


def mistyped_names(origins: Origins, free: Sequence[str]) -> Iterator[Problem]:
    """Return the first use of each such name; `free` are the names taken for parameters."""
    bindings = origins.scopes.bindings
    if not free or len(free) > _MAX_NAMES or len(bindings) > _MAX_NAMES:
        return
    near = _Neighbours(binding.name for binding in bindings)
    inner = {binding.name: binding for binding in bindings if binding.kind in _OWN}
    unseen = set(free)
    for node in origins.scopes.free:
        name = origins.tree.name(node)
        if name not in unseen:
            continue
        unseen.remove(name)
        intended = _elsewhere(origins, inner[name]) if name in inner else near.of(name)
        if intended is not None:
            message = f"{name} is not declared here, so the caller has to pass it: {intended}"
            yield Problem(node.start, message)


def _elsewhere(origins: Origins, binding: Binding) -> str:
    line = origins.tree.position(binding.node).line
    return f"the one of line {line} is known in its own block only."


@cache
def _given() -> "tuple[Set[str], Mapping[str, Sequence[str]]]":
    """Map the names that every program knows by their forms with one character left out."""
    names = {*GLOBALS, *_ROOTS}
    return names, _by_shortened(names)


def _by_shortened(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        for short in {*_shortened(name), name.lower()}:
            found.setdefault(short, []).append(name)
    return found


class _Neighbours:
    """Names by their forms with one character left out: those of a program, and the built-in
    ones."""

    def __init__(self, own: Iterable[str]) -> None:
        given, self._near_given = _given()
        mine = {name for name in own if len(name) <= _MAX_LENGTH}
        self._names = given | mine
        self._near_own = _by_shortened(mine - given)

    def of(self, name: str) -> str | None:
        """Return, as a question, the name that another most likely is a typo of."""
        if len(name) > _MAX_LENGTH or name in self._names:
            return None
        keys = (name, name.lower(), *_shortened(name))
        found = [
            known
            for key in keys
            for known in sorted([*self._near_given.get(key, ()), *self._near_own.get(key, ())])
        ]
        found += [short for short in _shortened(name) if short in self._names]
        intended = next((known for known in found if _is_typo(name, known)), None)
        return f"is {intended} meant?" if intended is not None else None


def _shortened(name: str) -> list[str]:
    return list(dict.fromkeys(name[:at] + name[at + 1 :] for at in range(len(name))))


def _is_typo(name: str, intended: str) -> bool:
    """Whether two names differ by two characters swapped, one too many or too few, or case; not by
    what names differ in on purpose: a number, an ending, a prefix."""
    if intended in GLOBALS and name.lower() == intended.lower():
        return False  # a date is not Date
    if name.lower() == intended.lower():
        return True
    if intended not in _ROOTS and max(len(name), len(intended)) < _MIN_LENGTH:
        return False
    if len(name) == len(intended):
        at = next(at for at in range(len(name)) if name[at] != intended[at])
        swapped = name[:at] + name[at + 1 : at + 2] + name[at] + name[at + 2 :]
        return swapped == intended
    longer, shorter = sorted((name, intended), key=len, reverse=True)
    at = next((at for at in range(len(shorter)) if longer[at] != shorter[at]), len(shorter))
    if longer[:at] + longer[at + 1 :] != shorter or longer[at].isdigit():
        return False
    is_inside = 0 < at < len(shorter)
    is_doubled = at > 0 and longer[at] == longer[at - 1]
    return is_inside or is_doubled or (intended in _ROOTS and name != f"{intended}s")
