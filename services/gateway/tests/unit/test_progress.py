"""The progress of a run, as numbers and calls."""

from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts import ids
from pml_common.contracts.trace import LogWritten, ToolStart
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.progress import (
    calls_of,
    next_value,
    progress_value,
    reached_in,
)
from services.gateway.tests.support.builders import (
    AT,
    READ,
    WRITE,
    analyzed,
    finished,
    with_capability,
    workflow,
)
from services.gateway.tests.support.steps import after

NEW = workflow()
TRACE = ids.root_trace_id(NEW.workflow_id)


@given(done=st.integers(0, 10**6), beats=st.integers(0, 10**4))
def test_progress_grows_with_beats_and_calls_and_stays_below_the_calls_reached(
    done: int, beats: int
) -> None:
    now = progress_value(done, beats)
    assert now < progress_value(done, beats + 1) < max(done, 0.5)
    assert now < progress_value(done + 1, 0)


@given(said=st.floats(-1, 1e9), wanted=st.floats(-1e9, 1e9))
def test_the_next_value_is_greater_than_the_last_and_the_wanted_one_if_it_can_be(
    said: float, wanted: float
) -> None:
    value = next_value(said, wanted)
    assert value > said
    assert value == wanted or wanted <= said


def test_a_programs_own_calls_are_counted() -> None:
    assert calls_of(NEW) == {}
    analysis = with_capability(analyzed(NEW, "allow", (READ, WRITE)))
    running = after(NEW, Analyzed(analysis, AT))[0]
    assert calls_of(running) == {"n1": "fs:read", "n2": "fs:write", "n9": "cap:fs:look"}


def test_entries_of_a_journal_tell_which_nodes_are_reached() -> None:
    start = ToolStart(trace_id=TRACE, ts=1, node_id="n1", tool="fs:read", args={}, args_hash="")
    line = LogWritten(trace_id=TRACE, ts=1, level="info", message="hello")
    end = finished(NEW)
    assert list(reached_in(end.model_copy(update={"entries": (start, line)}))) == ["n1"]
    assert list(reached_in(NEW.requested)) == []
