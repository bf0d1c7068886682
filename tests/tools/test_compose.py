"""Conclusions of the tools of the compose stack from containers, traces and runs."""

import pytest

from tools.compose.kills import CALLS, Run
from tools.compose.project import Container
from tools.compose.traces import in_jaeger, in_phoenix


@pytest.mark.parametrize(
    ("state", "health", "exit_code", "well", "lost"),
    [
        ("running", "healthy", 0, True, False),
        ("running", "", 0, True, False),
        ("running", "starting", 0, False, False),
        ("running", "unhealthy", 0, False, False),
        ("restarting", "", 1, False, False),
        ("exited", "", 0, True, False),
        ("exited", "", 1, False, True),
    ],
)
def test_a_container_is_well_lost_or_to_be_waited_for(
    state: str, health: str, exit_code: int, well: bool, lost: bool
) -> None:
    container = Container("pml-one-1", "one", state, health, exit_code)
    assert (container.is_well, container.is_lost) == (well, lost)


def test_a_trace_of_jaeger_names_the_service_of_each_span() -> None:
    trace = {
        "processes": {"p1": {"serviceName": "pml-gateway"}, "p2": {"serviceName": "pml-learner"}},
        "spans": [{"processID": "p1"}, {"processID": "p2"}, {"processID": "p2"}],
    }
    assert in_jaeger([trace]) == ({"gateway", "learner"}, 3)


def test_in_a_trace_of_phoenix_messages_tell_the_services() -> None:
    subjects = {
        "POST /api/execute": "",
        "serve analyze": "pml.qry.analyzer.analyze.v1",
        "publish run-finished": "pml.evt.executor.run-finished.v2",
        "publish run-workflow": "pml.cmd.executor.run-workflow.v2",
        "ask discover": "pml.qry.registry.discover.v1",
    }
    spans = [
        {"name": name, "attributes": {"messaging.destination.name": subject}}
        for name, subject in subjects.items()
    ]
    assert in_phoenix(spans) == {"gateway", "analyzer", "executor"}


_ALL = [f"line {n}" for n in range(CALLS)]
_TWO_MADE = {"status": "error", "calls": {"made": 3, "failed": 1}}


def test_a_run_may_not_repeat_lose_or_leave_open_what_it_did() -> None:
    assert Run("a", {"status": "success"}).faults(_ALL) == []
    assert Run("a", _TWO_MADE).faults(_ALL[:3]) == []
    assert Run("a", {"status": "success"}).faults([*_ALL, "line 3"]) == ["a: 'line 3' 2 times"]
    assert Run("a", {"status": "success"}).faults(_ALL[:-1]) == [
        f"a: completed call {CALLS - 1} left no line"
    ]
    assert Run("a", _TWO_MADE).faults(_ALL[:1]) == ["a: completed call 1 left no line"]
    assert Run("a", {"status": "running"}).faults([]) == ["a did not end: running"]
