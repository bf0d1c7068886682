"""Trials of programs: analysed, run as written and instrumented, and compared."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings

from pml_analysis.analysis import Analysis, analyze
from pml_common.contracts.decision import Policy
from pml_common.contracts.structure import TaskNode
from services.analyzer.tests.generated.binding import misfits
from services.analyzer.tests.generated.programs import CHOICES, program
from services.analyzer.tests.generated.text import render
from services.analyzer.tests.paths import TooManyWays, first_wrong_step
from services.analyzer.tests.support.programs import TOOLS
from services.analyzer.tests.support.recorder import Outcome

Run = Callable[[Sequence[str]], list[Outcome]]

TOO_MANY_WAYS: Final = "its path can be read in too many ways"
NOT_LOADED: Final = "as written it does not load: the transpiler or the engine is at fault"
UNCLEAR: Final = (TOO_MANY_WAYS, NOT_LOADED)
"""Complaints without information about the program."""
_TAKING_ANY: Final = tuple(tool.model_copy(update={"input_schema": {}}) for tool in TOOLS)
"""Tools without listed arguments: the keys that spreads set are unknown."""

_LAYOUTS: Final = ((" ", True), ("\n", True), (" ", False), ("\n", False), (" // c\n", True))
_IN_TYPE_ERRORS: Final = re.compile(r"(?:.* )?(is not (?:a function|iterable)|as it is)\b.*")
"""The engine's messages that quote the program's text, which differs when instrumented."""


@dataclass(frozen=True)
class Trial:
    """A program that was tried; `complaint` is its defect, or the reason why the trial is
    inconclusive."""

    code: str
    complaint: str | None
    nodes: int = 0
    steps: int = 0


def generate(count: int, *, seed_: int) -> list[bytes]:
    """Return the choices for different programs, the same ones for the same seed."""
    found: dict[bytes, None] = {}

    @seed(seed_)
    @given(CHOICES)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    def collect(choices: bytes) -> None:
        found[choices] = None

    collect()
    return list(found)


def written(choices: bytes) -> str:
    """Return the program of these choices; most have many lines."""
    layout, semicolons = _LAYOUTS[len(choices) % len(_LAYOUTS)]
    return render(program(choices), layout=layout, semicolons=semicolons)


def tried(programs: Sequence[str], run: Run) -> list[Trial]:
    """Try every program."""
    analyses = [analyze(code, tools=_TAKING_ANY, policy=Policy()) for code in programs]
    texts: list[str] = []
    for code, analysis in zip(programs, analyses, strict=True):
        # The parameter that programs use is bound by hand where nothing binds it.
        texts.append(f"const free = args.free; {code}")
        texts.append(analysis.instrumented if isinstance(analysis, Analysis) else "")
    outcomes = run(texts)
    return [
        _trial(code, analysis, *outcomes[2 * at : 2 * at + 2])
        if isinstance(analysis, Analysis)
        else Trial(code, f"it is rejected: {analysis.diagnostics[0].message}")
        for at, (code, analysis) in enumerate(zip(programs, analyses, strict=True))
    ]


def _trial(code: str, analysis: Analysis, plain: Outcome, marked: Outcome) -> Trial:
    if isinstance(plain, str):
        return Trial(code, NOT_LOADED)
    if isinstance(marked, str):
        return Trial(code, f"instrumented it does not load: {marked}")
    complaint = (
        _behaviour(plain, marked)
        or _calls(analysis, marked)
        or next(misfits(analysis, marked), None)
        or _path(analysis, marked)
    )
    return Trial(code, complaint, len(analysis.structure.nodes), len(marked["path"]))


def _behaviour(plain: dict[str, Any], marked: dict[str, Any]) -> str | None:
    """Check that both make the same calls in the same order, and end equally."""
    for number, (one, other) in enumerate(zip(plain["calls"], marked["calls"], strict=False)):
        if one[:2] != other[:2]:
            return f"call {number} is {one[:2]}, instrumented {other[:2]}"
    if len(plain["calls"]) != len(marked["calls"]):
        return f"it makes {len(plain['calls'])} calls, instrumented {len(marked['calls'])}"
    if _told(plain["end"]) != _told(marked["end"]):
        return f"it ends with {plain['end']}, instrumented with {marked['end']}"
    return None


def _told(end: dict[str, Any]) -> str:
    error: dict[str, Any] = end.get("error", {})
    if "before initialization" in str(error.get("message")):
        error["line"] = None  # the engine names the statement for some of these
    if error.get("name") == "TypeError":
        error["message"] = _IN_TYPE_ERRORS.sub(r"\1", error["message"])
    return json.dumps(end)


def _calls(analysis: Analysis, marked: dict[str, Any]) -> str | None:
    """Check that every call is a node of its tool, unless it was dynamic."""
    tasks = {n.id: n.tool for n in analysis.structure.nodes if isinstance(n, TaskNode)}
    for tool, given_, node_id in marked["calls"]:
        if node_id is None and not analysis.dynamic_calls:
            return f"the call of {tool} with {given_} has no node"
        if node_id is not None and tasks.get(node_id) != tool:
            return f"the call of {tool} is told as {node_id}, which is {tasks.get(node_id)}"
    return None


def _path(analysis: Analysis, marked: dict[str, Any]) -> str | None:
    """Check that the path is a path through the structure."""
    steps = [(node_id, outcome) for node_id, outcome in marked["path"]]
    try:
        wrong = first_wrong_step(analysis.structure, steps)
    except TooManyWays:
        return TOO_MANY_WAYS
    if wrong is None:
        return None
    told = [node_id if outcome is None else f"{node_id}:{outcome}" for node_id, outcome in steps]
    return f"after {' '.join(told[:wrong])} no way leads to {told[wrong]}"
