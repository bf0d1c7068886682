"""Comparison of a disturbed run with an undisturbed one: same end, no repeated calls."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pml_common.contracts.base import Contract
from pml_common.contracts.executor import RunFinished

_OWN = frozenset({"run", "drawn", "wait"})
"""Fields that may differ between runs: the run's name, random and clock values, and tool delays."""
_READS = '"tool": "tally:look"'
"""In the text of each call that only reads."""


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of one run: its caller's answer, its published ends, and its calls that reached a
    tool."""

    answer: Mapping[str, object]
    ends: Sequence[RunFinished]
    calls: Sequence[Mapping[str, object]]


def faults(outcome: RunOutcome, baseline: RunOutcome, *, may_read_again: bool = False) -> list[str]:
    """Differences from an undisturbed run of the same program. `may_read_again`: whoever made the
    calls died, so those under way that only read were made again."""
    if len(outcome.ends) != 1:
        return [f"its end was published {len(outcome.ends)} times"]
    end, expected = outcome.ends[0], baseline.ends[0]
    found = [
        f"{what}: {ours}, and undisturbed {theirs}"
        for what, ours, theirs in (
            ("answer", _plain(outcome.answer), _plain(baseline.answer)),
            ("path", end.executed_path, expected.executed_path),
            ("decisions", end.decisions, expected.decisions),
            ("calls", _tasks(end), _tasks(expected)),
            ("capabilities", _nested(end), _nested(expected)),
        )
        if ours != theirs
    ]
    made, completed = Counter(map(_call, outcome.calls)), Counter(_completed(end))
    found += [
        f"made {times} times: {call}"
        for call, times in made.items()
        if times != completed[call]
        and not (may_read_again and _READS in call and times > completed[call] > 0)
    ]
    found += [f"not made: {call}" for call in completed if not made[call]]
    return found


def _plain(value: object) -> object:
    """Remove fields that may differ between runs."""
    if isinstance(value, Mapping):
        known = cast("Mapping[str, object]", value)
        return {name: _plain(each) for name, each in known.items() if name not in _OWN}
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[object]", value)]
    return value


def _tasks(end: RunFinished) -> list[str]:
    fields = {"node_id", "tool", "args", "success", "result", "error"}
    return _sorted_dumps(end.task_results, fields)


def _nested(end: RunFinished) -> list[str]:
    fields = {"node_id", "name", "success", "result", "error", "executed_path", "decisions"}
    return _sorted_dumps(end.nested, fields)


def _sorted_dumps(parts: Sequence[Contract], fields: set[str]) -> list[str]:
    """Dump each with these fields, sorted: parallel calls may end in any order."""
    dumped = (part.model_dump(mode="json", include=fields) for part in parts)
    return sorted(json.dumps(_plain(each), sort_keys=True) for each in dumped)


def _completed(end: RunFinished) -> list[str]:
    return [_call({"tool": task.tool, "args": task.args}) for task in end.task_results]


def _call(call: Mapping[str, object]) -> str:
    return json.dumps(call, sort_keys=True)
