"""The crash suite's judge sees what a crash could do to a run."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.executor import NestedRun, RunFinished
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import TaskResult
from tests.crashes.verdict import Told, faults

ID = UUID(int=7)


def task(occurrence: int, args: JsonObject) -> TaskResult:
    return TaskResult(
        node_id="n1",
        occurrence=occurrence,
        tool="tally:mark",
        args=args,
        success=True,
        result={"n": args["n"], "drawn": args["drawn"]},
        trace_id=ID,
        started_at=1.0,
        duration_ms=2.0,
    )


def told(run: str, drawn: float, order: tuple[int, int] = (0, 1)) -> Told:
    """A run of two calls side by side."""
    given: list[JsonObject] = [{"run": run, "n": n, "drawn": drawn} for n in (1, 2)]
    fact = RunFinished(
        event_id=ID,
        scope=Scope(org="acme", project="web"),
        workflow_id=ID,
        principal="local",
        capability=CapabilityIdentity(capability_id=ID, code_hash="c0de"),
        success=True,
        result="done",
        executed_path=("n1", "n1"),
        task_results=tuple(task(place, given[place]) for place in order),
        trace_id=ID,
        started_at=1.0,
        duration_ms=2.0,
    )
    calls = [{"tool": "tally:mark", "args": args} for args in given]
    return Told({"status": "success", "result": "done", "error": None}, [fact], calls)


CALM = told("calm", 0.5)


def test_a_run_may_draw_otherwise_and_end_its_calls_in_another_order() -> None:
    assert faults(told("other", 0.25, (1, 0)), CALM) == []


def with_fact(**changes: object) -> Callable[[Told], Told]:
    return lambda run: replace(run, facts=[run.facts[0].model_copy(update=changes)])


SPOILT: dict[str, tuple[Callable[[Told], Told], str]] = {
    "a call is made twice": (
        lambda run: replace(run, calls=[*run.calls, run.calls[0]]),
        "made 2 times: ",
    ),
    "a call is lost": (lambda run: replace(run, calls=run.calls[1:]), "not made: "),
    "a tool got what the journal does not hold": (
        lambda run: replace(run, calls=told("other", 0.125).calls),
        "made 1 times: ",
    ),
    "no end is stated": (lambda run: replace(run, facts=[]), "stated 0 times"),
    "its end is stated twice": (
        lambda run: replace(run, facts=[*run.facts, *run.facts]),
        "stated 2 times",
    ),
    "its caller hears something else": (
        lambda run: replace(run, answer={**run.answer, "result": "undone"}),
        "answer: ",
    ),
    "it goes another way": (with_fact(executed_path=("n1",)), "path: "),
    "a call ends otherwise": (
        with_fact(task_results=(task(0, {"run": "", "n": 1, "drawn": 0}),) * 2),
        "calls: ",
    ),
    "a capability is called besides": (
        with_fact(
            nested=(
                NestedRun(
                    trace_id=ID,
                    parent_trace_id=ID,
                    node_id="n1",
                    occurrence=0,
                    capability=CapabilityIdentity(capability_id=ID, code_hash="c0de"),
                    name="steps:pair",
                    success=True,
                    started_at=1.0,
                    duration_ms=2.0,
                ),
            )
        ),
        "capabilities: ",
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_whatever_a_crash_spoils_is_seen(name: str) -> None:
    spoil, seen = SPOILT[name]
    found = faults(spoil(told("spoilt", 0.25)), CALM)
    assert any(seen in fault for fault in found), found
