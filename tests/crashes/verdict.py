"""Whether a run that was disturbed ended as one that was not, and repeated nothing."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pml_common.contracts.base import Contract
from pml_common.contracts.executor import RunFinished

_OWN = frozenset({"run", "drawn", "wait"})
"""What may differ from run to run: its name, what it drew from clock and chance, and how long a
tool took."""


@dataclass(frozen=True)
class Told:
    """What one run left behind: its caller's answer, the facts stated of it, the calls of it that
    reached a tool."""

    answer: Mapping[str, object]
    facts: Sequence[RunFinished]
    calls: Sequence[Mapping[str, object]]


def faults(told: Told, calm: Told) -> list[str]:
    """What is wrong with a run, told by an undisturbed one of the same program."""
    if len(told.facts) != 1:
        return [f"its end is stated {len(told.facts)} times"]
    fact, expected = told.facts[0], calm.facts[0]
    found = [
        f"{what}: {ours}, and undisturbed {theirs}"
        for what, ours, theirs in (
            ("answer", _plain(told.answer), _plain(calm.answer)),
            ("path", fact.executed_path, expected.executed_path),
            ("decisions", fact.decisions, expected.decisions),
            ("calls", _tasks(fact), _tasks(expected)),
            ("capabilities", _nested(fact), _nested(expected)),
        )
        if ours != theirs
    ]
    made, completed = Counter(map(_call, told.calls)), Counter(_completed(fact))
    found += [f"made {made[call]} times: {call}" for call in made if made[call] != completed[call]]
    found += [f"not made: {call}" for call in completed if not made[call]]
    return found


def _plain(value: object) -> object:
    """Without what is a run's own."""
    if isinstance(value, Mapping):
        known = cast("Mapping[str, object]", value)
        return {name: _plain(each) for name, each in known.items() if name not in _OWN}
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[object]", value)]
    return value


def _tasks(fact: RunFinished) -> list[str]:
    fields = {"node_id", "tool", "args", "success", "result", "error"}
    return _in_no_order(fact.task_results, fields)


def _nested(fact: RunFinished) -> list[str]:
    fields = {"node_id", "name", "success", "result", "error", "executed_path", "decisions"}
    return _in_no_order(fact.nested, fields)


def _in_no_order(parts: Sequence[Contract], fields: set[str]) -> list[str]:
    """Each with these fields, sorted: side by side, they may end in any order."""
    dumped = (part.model_dump(mode="json", include=fields) for part in parts)
    return sorted(json.dumps(_plain(each), sort_keys=True) for each in dumped)


def _completed(fact: RunFinished) -> list[str]:
    return [_call({"tool": task.tool, "args": task.args}) for task in fact.task_results]


def _call(call: Mapping[str, object]) -> str:
    return json.dumps(call, sort_keys=True)
