"""The crash suite's comparison detects every effect of a crash on a run."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.executor import NestedRun, RunFinished
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import TaskResult
from tests.crashes.verdict import RunOutcome, faults

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


def outcome(run: str, drawn: float, order: tuple[int, int] = (0, 1)) -> RunOutcome:
    """Build the outcome of a run with two parallel calls."""
    given: list[JsonObject] = [{"run": run, "n": n, "drawn": drawn} for n in (1, 2)]
    end = RunFinished(
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
    return RunOutcome({"status": "success", "result": "done", "error": None}, [end], calls)


CALM = outcome("calm", 0.5)


def test_random_values_and_the_order_of_parallel_calls_may_differ() -> None:
    assert faults(outcome("other", 0.25, (1, 0)), CALM) == []


def with_end(**changes: object) -> Callable[[RunOutcome], RunOutcome]:
    return lambda run: replace(run, ends=[run.ends[0].model_copy(update=changes)])


SPOILT: dict[str, tuple[Callable[[RunOutcome], RunOutcome], str]] = {
    "a call is made twice": (
        lambda run: replace(run, calls=[*run.calls, run.calls[0]]),
        "made 2 times: ",
    ),
    "a call is lost": (lambda run: replace(run, calls=run.calls[1:]), "not made: "),
    "a tool got what the journal does not hold": (
        lambda run: replace(run, calls=outcome("other", 0.125).calls),
        "made 1 times: ",
    ),
    "no end is published": (lambda run: replace(run, ends=[]), "published 0 times"),
    "its end was published twice": (
        lambda run: replace(run, ends=[*run.ends, *run.ends]),
        "published 2 times",
    ),
    "its caller gets another answer": (
        lambda run: replace(run, answer={**run.answer, "result": "undone"}),
        "answer: ",
    ),
    "it takes another path": (with_end(executed_path=("n1",)), "path: "),
    "a call ends differently": (
        with_end(task_results=(task(0, {"run": "", "n": 1, "drawn": 0}),) * 2),
        "calls: ",
    ),
    "another capability is called": (
        with_end(
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
def test_every_effect_of_a_crash_is_detected(name: str) -> None:
    spoil, seen = SPOILT[name]
    found = faults(spoil(outcome("spoilt", 0.25)), CALM)
    assert any(seen in fault for fault in found), found


def test_only_a_read_under_way_may_be_made_again() -> None:
    def reading(run: str, *, times: int) -> RunOutcome:
        made = outcome(run, 0.5)
        tasks = [
            task.model_copy(update={"tool": "tally:look"}) for task in made.ends[0].task_results
        ]
        end = made.ends[0].model_copy(update={"task_results": tuple(tasks)})
        calls = [{**call, "tool": "tally:look"} for call in made.calls]
        return replace(made, ends=[end], calls=[*calls, *calls[:1] * (times - 1)])

    calm, again = reading("calm", times=1), reading("other", times=2)
    assert faults(again, calm, may_read_again=True) == []
    assert faults(again, calm)
    assert faults(replace(again, calls=again.calls[1:2]), calm, may_read_again=True)
    twice = outcome("other", 0.5)
    assert faults(replace(twice, calls=[*twice.calls, *twice.calls]), CALM, may_read_again=True)
