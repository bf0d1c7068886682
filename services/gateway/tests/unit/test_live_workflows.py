"""Workflows that are known from the bus and not stored yet."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from typing_extensions import override

from libs.pml_common.tests.support.builders import after
from pml_common.bus import codec, names
from pml_common.bus.codec import Envelope
from pml_common.bus.errors import Unreadable
from pml_common.bus.port import EventsOf, StoredMessage
from pml_common.contracts import catalog
from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters import live_workflows
from pml_gateway.adapters.live_workflows import LiveWorkflows
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.workflow.accepted_run import acceptance_of
from pml_gateway.domain.workflow.cancellation import require_open
from pml_gateway.domain.workflow.events import Analyzed, Cancelled
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance
from services.gateway.tests.support.builders import (
    AT,
    RULES,
    SCOPE,
    analyzed,
    finished,
    workflow,
)
from services.gateway.tests.support.fake_stores import FakeWorkflows


async def running() -> tuple[LiveWorkflows, FakeWorkflows, MemoryBus, Workflow]:
    """Store a workflow that runs."""
    kept, bus, new = FakeWorkflows(), MemoryBus(), workflow()
    store = LiveWorkflows(kept, bus)
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
    monkeypatch.setattr(live_workflows, "FRESH_S", 0.0)
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
    monkeypatch.setattr(live_workflows, "KEPT_S", 0.0)
    another = workflow(key="another")
    store.hear(replace(another, state="running"), finished(another))
    assert store.latest(SCOPE, now.workflow_id) == now
    assert await store.get(SCOPE, now.workflow_id) == ended


async def accepted() -> tuple[LiveWorkflows, FakeWorkflows, MemoryBus, Workflow]:
    """Let the bus accept a workflow that runs."""
    kept, bus, new = FakeWorkflows(), MemoryBus(), workflow()
    store = LiveWorkflows(kept, bus)
    after, effects = advance(new, Analyzed(analyzed(new), AT), RULES)
    message = acceptance_of(after, effects)
    assert message is not None
    assert await store.accept_run(after, message) is None
    return store, kept, bus, after


async def message_of(bus: MemoryBus, of: Workflow) -> WorkflowAccepted:
    [found] = await bus.salvage(catalog.WORKFLOW_ACCEPTED, SCOPE, str(of.workflow_id))
    assert isinstance(found, StoredMessage)
    assert isinstance(found.message, WorkflowAccepted)
    return found.message


def cancel(before: Workflow) -> Step:
    return advance(before, Cancelled("mira", AT), RULES)


async def test_what_the_bus_accepted_is_read_and_listed_before_it_is_stored() -> None:
    store, kept, bus, now = await accepted()
    assert store.latest(SCOPE, now.workflow_id) == now
    assert await store.get(SCOPE, now.workflow_id) == now
    assert kept.kept == {}
    assert await LiveWorkflows(kept, bus).get(SCOPE, now.workflow_id) == now, "another gateway"
    assert await LiveWorkflows(kept, bus).get(SCOPE, uuid4()) is None
    [listed] = (await store.page(SCOPE, 10, 0)).workflows
    assert listed.workflow_id == now.workflow_id
    assert await LiveWorkflows(kept, MemoryBus()).get(SCOPE, now.workflow_id) == now, "stored"


async def test_a_key_that_the_bus_has_accepted_stands_for_that_workflow() -> None:
    store, _, bus, now = await accepted()
    another = replace(now, request_hash="another")
    assert await store.accept_run(another, await message_of(bus, now)) == now


async def test_what_was_accepted_is_stored_once_with_its_end_if_that_is_known() -> None:
    store, kept, bus, now = await accepted()
    message, end = await message_of(bus, now), after(0, finished(now, result=1))
    ended = store.hear(now, end)
    await store.add_accepted([message])
    assert kept.kept == {(SCOPE, now.workflow_id): ended}
    assert await store.end([end]) == [ended]
    await store.add_accepted([message])
    assert kept.kept == {(SCOPE, now.workflow_id): ended}


async def test_an_end_that_comes_first_stores_its_workflow() -> None:
    store, kept, bus, now = await accepted()
    end = after(0, finished(now, result=1))
    elsewhere = LiveWorkflows(kept, bus)
    for each in (store, elsewhere, store):
        [ended] = await each.end([end])
        assert ended.state == "succeeded"
        assert kept.kept == {(SCOPE, now.workflow_id): ended}
        kept.kept = {} if each is store else kept.kept
    [ended] = await elsewhere.end([end])
    assert kept.kept == {(SCOPE, now.workflow_id): ended}
    unknown = workflow(key="unknown")
    assert not await store.end([finished(unknown)])


@pytest.mark.parametrize("here", [True, False], ids=["the same gateway", "another gateway"])
async def test_a_step_of_a_workflow_that_is_not_stored_stores_it_first(here: bool) -> None:
    store, kept, bus, now = await accepted()
    store = store if here else LiveWorkflows(kept, bus)
    taken = await store.change(SCOPE, now.workflow_id, cancel)
    assert taken is not None
    assert kept.kept[SCOPE, now.workflow_id].error is not None
    assert await store.change(SCOPE, uuid4(), cancel) is None


@pytest.mark.parametrize("here", [True, False], ids=["the same gateway", "another gateway"])
async def test_a_message_about_a_workflow_that_is_not_stored_stores_it_first(here: bool) -> None:
    store, kept, bus, now = await accepted()
    store = store if here else LiveWorkflows(kept, bus)
    assert now.analysis is not None
    taken = await store.step_once(now.analysis, "consumer", now.workflow_id, cancel)
    assert taken is not None
    assert kept.kept[SCOPE, now.workflow_id].error is not None
    assert await store.step_once(now.analysis, "consumer", uuid4(), cancel) is None


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("here", [True, False], ids=["the same gateway", "another gateway"])
async def test_what_is_known_of_a_workflow_can_be_stored_at_once(here: bool, ends: bool) -> None:
    store, kept, bus, now = await accepted()
    store = store if here else LiveWorkflows(kept, bus)
    known = store.hear(now, after(0, finished(now, result=1))) if here and ends else now
    await store.settle(SCOPE, now.workflow_id)
    assert kept.kept == {(SCOPE, now.workflow_id): known}
    await store.settle(SCOPE, now.workflow_id)
    assert kept.kept == {(SCOPE, now.workflow_id): known}


class AwayStore(FakeWorkflows):
    """A store that cannot be reached."""

    @override
    async def get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        raise StorageUnavailable("Postgres does not answer")


async def test_without_the_store_the_bus_tells_what_it_accepted_and_how_it_ended() -> None:
    _, _, bus, now = await accepted()
    away = LiveWorkflows(AwayStore(), bus)
    assert await away.get(SCOPE, now.workflow_id) == now
    await bus.publish(after(0, finished(now, result=1)))
    ended = await away.get(SCOPE, now.workflow_id)
    assert ended is not None
    assert ended.state == "succeeded"
    with pytest.raises(StorageUnavailable):
        await away.get(SCOPE, uuid4())
    bus.broker.available = False
    with pytest.raises(StorageUnavailable):
        await LiveWorkflows(AwayStore(), bus).get(SCOPE, now.workflow_id)


class RacingBus(MemoryBus):
    """A bus from which a message is gone just before it is looked for: its row was stored."""

    def __init__(self, store: FakeWorkflows, meanwhile: Workflow) -> None:
        super().__init__()
        self._meanwhile = store, meanwhile

    @override
    async def salvage(
        self, of: EventsOf, scope: Scope, entity: str
    ) -> Sequence[StoredMessage | Unreadable]:
        store, stored = self._meanwhile
        await store.add([stored])
        return await super().salvage(of, scope, entity)


async def racing() -> tuple[LiveWorkflows, Workflow]:
    """Let another gateway store a workflow while this one looks for it on the bus."""
    _, _, _, now = await accepted()
    kept = FakeWorkflows()
    return LiveWorkflows(kept, RacingBus(kept, now)), now


async def test_a_workflow_that_gets_its_row_between_two_looks_is_found() -> None:
    store, now = await racing()
    assert await store.get(SCOPE, now.workflow_id) == now
    store, now = await racing()
    assert await store.change(SCOPE, now.workflow_id, cancel) is not None
    store, now = await racing()
    assert now.analysis is not None
    assert await store.step_once(now.analysis, "consumer", now.workflow_id, cancel) is not None
    store, now = await racing()
    [ended] = await store.end([after(0, finished(now, result=1))])
    assert ended.state == "succeeded"


async def test_where_the_bus_does_not_tell_nobody_is_told_that_there_is_no_workflow() -> None:
    bus = MemoryBus()
    bus.broker.available = False
    with pytest.raises(StorageUnavailable, match="NATS does not tell"):
        await LiveWorkflows(FakeWorkflows(), bus).get(SCOPE, uuid4())


async def test_what_no_gateway_has_stored_after_a_while_is_stored_by_the_one_that_accepted_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, kept, _, now = await accepted()
    await store.store_late()
    assert kept.kept == {}
    monkeypatch.setattr(live_workflows, "FRESH_S", 0.0)
    await store.store_late()
    assert kept.kept == {(SCOPE, now.workflow_id): now}


async def test_an_end_whose_workflow_was_stored_with_it_counts_once() -> None:
    store, kept, _, now = await accepted()
    end = after(0, finished(now, result=1))
    ended = store.hear(now, end)
    assert await store.end([end]) == [ended]
    assert kept.kept == {(SCOPE, now.workflow_id): ended}
