"""Steps of workflows: stored first, then the run cached, effects published, callers notified."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

import pytest

from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import ExecutionRequested, WorkflowFinished
from pml_common.contracts.scope import Scope
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.local_notifier import LocalNotifier
from pml_gateway.application.run_cache import RunCache
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.workflow.accepted_run import acceptance_of
from pml_gateway.domain.workflow.events import Analyzed, Cancelled, WorkflowEvent
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.ports import Outgoing
from services.gateway.tests.support.builders import AT, SCOPE, analyzed, workflow
from services.gateway.tests.support.fake_stores import FakeWorkflows
from services.gateway.tests.support.harness import workflow_service


@dataclass
class Recorder:
    """A store, a run cache, a relay and a notifier that record the order of their calls."""

    order: list[str] = field(default_factory=list[str])
    published: list[Message] = field(default_factory=list[Message])

    def service(self) -> WorkflowService:
        """A workflow service on them."""
        recorder = self

        class Store(FakeWorkflows):
            async def change(
                self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
            ) -> Step | None:
                recorder.order.append("store")
                return await super().change(scope, workflow_id, step)

        class Known(RunCache):
            def put(self, workflow: Workflow) -> None:
                recorder.order.append("cache")
                super().put(workflow)

        class Relay:
            async def publish(self, outgoing: Sequence[Outgoing]) -> None:
                recorder.order.append("publish")
                recorder.published += [each.message for each in outgoing]

        class Notifier(LocalNotifier):
            def notify(self, workflow: Workflow) -> None:
                recorder.order.append("notify")
                super().notify(workflow)

        store = Store()
        return replace(
            workflow_service(store), runs=Known(store), relay=Relay(), notifier=Notifier()
        )


async def begin(service: WorkflowService, new: Workflow) -> Workflow:
    """Let an accepted workflow run."""
    return await take(service, new, Analyzed(analyzed(new), AT))


async def take(service: WorkflowService, of: Workflow, event: WorkflowEvent) -> Workflow:
    def step(before: Workflow) -> Step:
        return service.advance(before, event)

    after = await service.step(of.scope, of.workflow_id, step)
    assert after is not None
    return after


async def test_a_request_is_published_once_however_often_it_is_accepted() -> None:
    recorder, new = Recorder(), workflow()
    service = recorder.service()
    assert await service.accept((new, (new.requested,))) is new
    again = replace(new, timeout_s=1.0)
    assert await service.accept((again, (again.requested,))) == new
    [request] = recorder.published
    assert isinstance(request, ExecutionRequested)


@pytest.mark.parametrize(
    ("event", "published"),
    [(None, RunWorkflow), (Cancelled("ada", AT), WorkflowFinished)],
    ids=["a run begins", "a workflow is cancelled"],
)
async def test_a_step_is_stored_then_cached_then_published_then_notified(
    event: WorkflowEvent | None, published: type[Message]
) -> None:
    recorder, new = Recorder(), workflow()
    service = recorder.service()
    await service.accept((new, (new.requested,)))
    recorder.order.clear()
    await take(service, new, event or Analyzed(analyzed(new), AT))
    assert recorder.order == ["store", "cache", "publish", "notify"]
    assert isinstance(recorder.published[-1], published)


async def test_nothing_follows_from_a_step_that_is_refused_or_of_no_workflow() -> None:
    recorder, new = Recorder(), workflow()
    service = recorder.service()
    await service.accept((new, (new.requested,)))
    recorder.order.clear()

    def refuse(before: Workflow) -> Step:
        raise Conflict(f"{before.workflow_id} is open")

    with pytest.raises(Conflict):
        await service.step(SCOPE, new.workflow_id, refuse)
    assert await service.step(SCOPE, uuid4(), refuse) is None
    assert recorder.order == ["store"] * 3, "also after a look at what the bus has accepted"


async def test_a_run_is_accepted_by_the_bus_and_by_the_store_while_the_bus_is_away() -> None:
    kept, bus = FakeWorkflows(), MemoryBus()
    service = workflow_service(kept, bus)
    for key, is_stored in (("first", False), ("second", True)):
        bus.broker.available = not is_stored
        new = workflow(key=key)
        step = service.advance(new, Analyzed(analyzed(new), AT))
        assert await service.accept(step) == step[0]
        assert ((SCOPE, new.workflow_id) in kept.kept) == is_stored
        assert service.runs.is_known(SCOPE, str(new.workflow_id))
        outgoing = [each.message for each in await kept.outbox.claim(1)]
        assert outgoing == ([acceptance_of(*step)] if is_stored else [])


async def test_a_caller_that_waits_is_notified_of_a_step() -> None:
    service, new = Recorder().service(), workflow()
    await service.accept((new, (new.requested,)))
    with service.subscribe(new.scope, new.workflow_id) as waiter:
        running = await begin(service, new)
        assert await waiter.wait(1.0) == running
        await take(service, new, Cancelled("ada", AT))
        notified = await waiter.wait(1.0)
    assert notified is not None
    assert notified.error is not None
