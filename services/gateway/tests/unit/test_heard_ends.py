"""Ends of runs that are known and not stored yet."""

from dataclasses import replace

import pytest

from libs.pml_common.tests.support.builders import after
from pml_common.bus import codec, names
from pml_common.bus.codec import Envelope
from pml_common.bus.memory import MemoryBus
from pml_common.contracts import catalog
from pml_gateway.adapters import heard_ends
from pml_gateway.adapters.heard_ends import HeardEnds
from pml_gateway.adapters.memory.workflows import MemoryWorkflowStore
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.workflow.cancellation import require_open
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance
from services.gateway.tests.support.builders import (
    AT,
    RULES,
    SCOPE,
    analyzed,
    finished,
    workflow,
)


async def running() -> tuple[HeardEnds, MemoryWorkflowStore, MemoryBus, Workflow]:
    """Store a workflow that runs."""
    kept, bus, new = MemoryWorkflowStore(), MemoryBus(), workflow()
    store = HeardEnds(kept, bus)
    after, effects = advance(new, Analyzed(analyzed(new), AT), RULES)
    await store.accept(after, effects)
    return store, kept, bus, after


async def test_an_end_that_was_heard_is_read_and_listed_before_it_is_stored() -> None:
    store, kept, _, now = await running()
    ended = store.hear(now, finished(now, result=1))
    assert ended.state == "succeeded"
    assert store.latest(SCOPE, now.workflow_id) == ended
    assert await store.get(SCOPE, now.workflow_id) == ended
    assert await store.accept(replace(now), ()) == ended
    [listed] = (await store.page(SCOPE, 10, 0)).workflows
    assert listed.status == "success"
    assert kept.kept[SCOPE, now.workflow_id] == now
    await store.end([finished(now, result=1)])
    assert kept.kept[SCOPE, now.workflow_id] == ended


async def test_an_end_that_another_gateway_heard_is_read_from_the_journal() -> None:
    store, _, bus, now = await running()
    subject = names.subject_of(catalog.RUN_FINISHED, SCOPE, str(now.workflow_id))
    forged = Envelope(subject, b"{}", {codec.MSG_ID: "forged"})
    bus.broker.store(forged)
    assert await store.get(SCOPE, now.workflow_id) == now
    await bus.publish(after(1, finished(now, result=1)))
    bus.broker.store(replace(forged, headers={codec.MSG_ID: "forged again"}))
    found = await store.get(SCOPE, now.workflow_id)
    assert found is not None
    assert found.state == "succeeded"


async def test_while_the_journal_cannot_be_read_the_run_goes_on() -> None:
    store, _, bus, now = await running()
    bus.broker.available = False
    assert await store.get(SCOPE, now.workflow_id) == now


async def test_a_run_whose_end_was_heard_is_not_cancelled() -> None:
    store, kept, _, now = await running()
    store.hear(now, finished(now, result=1))

    def cancel(before: Workflow) -> Step:
        require_open(before)
        raise AssertionError(before.state)

    with pytest.raises(Conflict, match="succeeded at"):
        await store.change(SCOPE, now.workflow_id, cancel)
    assert kept.kept[SCOPE, now.workflow_id].state == "succeeded"


async def test_an_end_of_a_run_that_has_ended_is_not_heard() -> None:
    store, _, _, now = await running()
    ended = store.hear(now, finished(now, result=1))
    assert store.hear(ended, finished(now, result=2)) is ended
    assert await store.get(SCOPE, now.workflow_id) == ended


async def test_an_end_that_another_gateway_stored_or_contradicted_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, kept, _, now = await running()
    ended = store.hear(now, finished(now, result=1))
    monkeypatch.setattr(heard_ends, "FRESH_S", 0.0)
    assert await store.get(SCOPE, now.workflow_id) == ended, "it is not stored yet"
    other = replace(now, state="failed")
    kept.kept[SCOPE, now.workflow_id] = other
    assert await store.get(SCOPE, now.workflow_id) == other
    assert store.latest(SCOPE, now.workflow_id) == other


async def test_old_ends_are_forgotten_and_read_from_the_journal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, _, bus, now = await running()
    end = finished(now, result=1)
    await bus.publish(end)
    ended = store.hear(now, end)
    monkeypatch.setattr(heard_ends, "KEPT_S", 0.0)
    another = workflow(key="another")
    store.hear(replace(another, state="running"), finished(another))
    assert store.latest(SCOPE, now.workflow_id) == now
    assert await store.get(SCOPE, now.workflow_id) == ended
