"""Entry ids: node ids at run time for functions that are entered in several ways.

Each way in is a row of node ids, one for each of the function's slots; a slot that enters another
such function holds the number of that function's row. A function that is entered in one way needs
none.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pml_analysis.structure.expansion import Expansion, Instance
from pml_analysis.structure.marks import Mark
from pml_analysis.structure.units import Unit

TABLE: Final = "__pml_nodes"
_RECURSION: Final = -1
"""The slot of the loop that a self-entering function makes."""


@dataclass(frozen=True, slots=True)
class _Slots:
    """The slots of one function: its position among those with rows, its instances, slots by syntax
    index."""

    number: int
    instances: Sequence[Instance]
    slots: dict[int, int]


class EntryIds:
    """Builds, for every mark, the JavaScript expression of the node id it stands for."""

    def __init__(self, expansion: Expansion) -> None:
        self._expansion = expansion
        self._instances: dict[int | None, list[Instance]] = {}
        for instance in expansion.instances:
            self._instances.setdefault(_function(instance), []).append(instance)
        several = [
            function for function, instances in self._instances.items() if len(instances) > 1
        ]
        self._slots = {
            function: _Slots(number, self._instances[function], self._slots_of(function))
            for number, function in enumerate(several)
        }
        with_rows = [one for slots in self._slots.values() for one in slots.instances]
        self._row = {instance.number: row for row, instance in enumerate(with_rows)}

    def table(self) -> str:
        """Return the declaration of all rows; empty where none are needed."""
        if not self._slots:
            return ""
        rows = [
            [self._entry(slot, instance) for slot in slots.slots]
            for slots in self._slots.values()
            for instance in slots.instances
        ]
        return f"const {TABLE} = {json.dumps(rows, separators=(',', ':'))}; "

    def node(self, mark: Mark, function: int | None) -> str:
        """Return the id of the node that a mark of a function makes."""
        return self._read(mark.node.index, function)

    def recursion(self, function: int) -> str | None:
        """Return the id of the loop of a function that enters itself; None where it never does."""
        loops = self._expansion.loops
        if not any(instance.number in loops for instance in self._instances[function]):
            return None
        return self._read(_RECURSION, function)

    def entering(self, mark: Mark, function: int | None) -> tuple[str, str] | None:
        """Return the row with which a mark of one function enters another, and that one's key."""
        callee = self._slots.get(None if mark.unit is None else mark.unit.function.index)
        if callee is None:
            return None
        return self._read(mark.node.index, function), str(callee.number)

    def entry(self, unit: Unit) -> tuple[str, str, str] | None:
        """Return, for the body of a function with rows, the name that holds its row, its key, and
        the row when it is entered in an unknown way."""
        slots = self._slots.get(unit.function.index)
        if slots is None:
            return None
        loose = next((one for one in slots.instances if not one.is_invoked), None)
        caller = None if loose is None else loose.caller
        otherwise = (
            str(self._row[slots.instances[0].number])
            if caller is None
            else self._read(unit.function.index, _function(caller))
        )
        return _variable(slots.number), str(slots.number), otherwise

    def _slots_of(self, function: int | None) -> dict[int, int]:
        marks = self._expansion.marks[function]
        places = [_RECURSION, *(mark.node.index for mark in marks if mark.kind != "parallel")]
        return {place: slot for slot, place in enumerate(places)}

    def _read(self, place: int, function: int | None) -> str:
        slots = self._slots.get(function)
        if slots is None:
            return json.dumps(self._entry(place, self._instances[function][0]))
        return f"{TABLE}[{_variable(slots.number)}][{slots.slots[place]}]"

    def _entry(self, place: int, instance: Instance) -> str | int | None:
        """Return the content of a slot: a node id, or the number of a row."""
        if place == _RECURSION:
            return self._expansion.loops.get(instance.number)
        key = (place, instance.number)
        entered = self._expansion.entered.get(key)
        return self._expansion.ids.get(key) if entered is None else self._row.get(entered.number)


def _function(instance: Instance) -> int | None:
    return None if instance.unit is None else instance.unit.function.index


def _variable(number: int) -> str:
    return f"__pml_{number}"
