"""Ends and parks are accepted only if they agree with the run's journal."""

from typing import cast
from uuid import uuid4

import pytest

from pml_common.bus.delivery import DeadLetter, Retry, dispose
from pml_common.bus.errors import BusError, Rejected
from pml_common.bus.memory import MemoryBus
from pml_common.contracts.catalog import GATEWAY_ON_RUN_FINISHED
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import ParkMark, RunFinished, TraceRecorded, WorkflowParked
from pml_common.contracts.trace import CapabilityEnd
from pml_gateway.domain.workflow.provenance import journal_mismatch
from pml_gateway.entrypoints.bus.journal_check import require_in_journal
from services.gateway.tests.support.builders import finished, workflow
from services.gateway.tests.support.fakes import closing, journaled
from services.gateway.tests.support.layered import running
from services.gateway.tests.support.parked_runs import parked

OURS = workflow()
END = finished(OURS, result={"n": 1}).model_copy(update={"journal_sequence": 7})
LAST = closing(END)
PARK = parked(running()[1]).model_copy(update={"journal_sequence": 7})


def marked(park: WorkflowParked, **changed: object) -> TraceRecorded:
    """Build the append that parked the run."""
    mark = ParkMark(command_id=park.command_id, ts=1.0, wanted=park.wanted)
    return LAST.model_copy(update={"entries": (), "mark": mark.model_copy(update=changed)})


def closed_otherwise(**changed: object) -> TraceRecorded:
    """Build the last append with its last entry changed."""
    end = cast("CapabilityEnd", LAST.entries[-1])
    return LAST.model_copy(update={"entries": (end.model_copy(update=changed),)})


def test_an_end_that_the_journal_says_is_founded() -> None:
    assert journal_mismatch(END, 7, LAST) is None
    assert journal_mismatch(PARK, 7, marked(PARK)) is None


@pytest.mark.parametrize(
    ("fact", "sequence", "last", "why"),
    [
        (END, 0, None, "no journal"),
        (END, 8, LAST, "names append 7 of the journal, whose last is 8"),
        (finished(OURS), 7, LAST, "names append None"),
        (END, 7, LAST.model_copy(update={"entries": ()}), "not say that the run has ended"),
        (END, 7, closed_otherwise(parent_trace_id=uuid4()), "not say that the run has ended"),
        (END, 7, closed_otherwise(result={"n": 2}), "ended otherwise"),
        (END, 7, closed_otherwise(success=False), "ended otherwise"),
        (
            END,
            7,
            closed_otherwise(error=WorkflowError(kind="timeout", message="late")),
            "ended otherwise",
        ),
        (PARK, 7, LAST, "not say that the run is parked"),
        (PARK, 7, marked(PARK, wanted=None), "not say that the run is parked"),
        (PARK, 7, marked(PARK, command_id=uuid4()), "not say that the run is parked"),
    ],
)
def test_an_end_that_the_journal_does_not_say_is_not(
    fact: RunFinished | WorkflowParked, sequence: int, last: TraceRecorded | None, why: str
) -> None:
    assert why in (journal_mismatch(fact, sequence, last) or "")


@pytest.mark.parametrize(
    "forged", [{"journal_sequence": None}, {"journal_sequence": 0}, {"result": "forged"}]
)
async def test_a_forged_end_is_rejected(forged: dict[str, object]) -> None:
    bus = MemoryBus()
    end = await journaled(bus, finished(OURS))
    await require_in_journal(end, bus)
    with pytest.raises(Rejected, match="not taken"):
        await require_in_journal(end.model_copy(update=forged), bus)


async def test_a_stale_end_of_an_executor_that_lost_the_run_is_rejected() -> None:
    bus = MemoryBus()
    stale = await journaled(bus, finished(OURS))
    another = closing(finished(OURS)).model_copy(update={"event_id": uuid4()})
    await bus.publish(another)
    with pytest.raises(Rejected, match="names append 1 of the journal, whose last is 2"):
        await require_in_journal(stale, bus)


async def test_an_end_whose_append_is_not_to_be_seen_yet_is_looked_at_again() -> None:
    bus = MemoryBus()
    end = await journaled(bus, finished(OURS))
    with pytest.raises(BusError, match="names append 2") as unseen:
        await require_in_journal(end.model_copy(update={"journal_sequence": 2}), bus)
    assert isinstance(dispose(unseen.value, GATEWAY_ON_RUN_FINISHED, 1), Retry)
    lost = dispose(unseen.value, GATEWAY_ON_RUN_FINISHED, GATEWAY_ON_RUN_FINISHED.max_failures)
    assert isinstance(lost, DeadLetter)
