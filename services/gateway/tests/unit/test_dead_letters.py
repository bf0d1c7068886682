"""Dead letters end the workflows that wait for them; handling one twice changes nothing."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import pytest

from pml_common.bus.port import DeadMessage
from pml_common.contracts import ids
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import WorkflowFinished
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.live_workflows import LiveWorkflows
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance
from pml_gateway.entrypoints.bus.on_dead_letter import on_dead_letter
from services.gateway.tests.support.builders import AT, RULES, analyzed, finished, workflow
from services.gateway.tests.support.fake_stores import FakeWorkflows
from services.gateway.tests.support.harness import workflow_service


class Scene:
    """A workflow that runs, and the handler on its store."""

    def __init__(self) -> None:
        self.kept, self.bus = FakeWorkflows(), MemoryBus()
        self.store = LiveWorkflows(self.kept, self.bus)
        self.new = workflow()

    async def start(self) -> Workflow:
        """Accept the workflow and let it run."""
        await self.store.accept(self.new, (self.new.requested,))

        def begin(before: Workflow) -> Step:
            return advance(before, Analyzed(analyzed(self.new), AT), RULES)

        taken = await self.store.change(self.new.scope, self.new.workflow_id, begin)
        assert taken is not None
        return taken[0]

    async def handle(self, consumer: str, message_id: object) -> None:
        """Handle the dead letter of a message twice."""
        letter = DeadMessage(
            consumer=consumer,
            message_id=str(message_id),
            scope=self.new.scope,
            entity=str(self.new.workflow_id),
            reason="why",
        )
        for _ in range(2):
            returned = await on_dead_letter(
                letter,
                workflows=replace(workflow_service(self.kept, self.bus), store=self.store),
                store=self.store,
                journal=self.bus,
                now=lambda: AT,
            )
            assert returned == ()

    async def handle_end(self, end: RunFinished) -> None:
        """Handle the end of the run, dead-lettered by the gateway."""
        await self.handle("gateway-on-run-finished", end.event_id)

    async def current(self) -> Workflow:
        found = await self.store.get(self.new.scope, self.new.workflow_id)
        assert found is not None
        return found

    async def published_ends(self) -> Sequence[WorkflowFinished]:
        entity = str(self.new.workflow_id)
        past = [each.message for each in await self.bus.history(self.new.scope, entity)]
        return [message for message in past if isinstance(message, WorkflowFinished)]


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_dead_lettered_command_ends_its_workflow_once(scene: Scene) -> None:
    running = await scene.start()
    await scene.handle("executor-on-run-workflow", running.run_command_id)
    after = await scene.current()
    assert (after.state, after.error and after.error.kind) == ("failed", "internal")
    [end] = await scene.published_ends()
    assert end.error == after.error


async def test_a_recorded_end_that_could_not_be_stored_is_stored(scene: Scene) -> None:
    end = finished(await scene.start(), result=1)
    await scene.bus.publish(end)
    await scene.handle_end(end)
    kept = scene.kept.kept[end.scope, end.workflow_id]
    assert (kept.state, kept.run) == ("succeeded", end.without_entries())
    assert await scene.published_ends() == []


async def test_a_dead_letter_that_no_workflow_waits_for_ends_nothing(scene: Scene) -> None:
    await scene.handle("executor-on-run-workflow", uuid4())  # there is no such workflow
    running = await scene.start()
    await scene.handle("registry-on-execution-analyzed", uuid4())
    await scene.handle("executor-on-run-workflow", uuid4())
    cause = ids.effect_id(running.requested.event_id, "execution-analyzed")
    await scene.handle("gateway-on-execution-analyzed", cause)
    assert (await scene.current()) == running


async def test_a_dead_lettered_request_ends_its_workflow_before_it_runs(scene: Scene) -> None:
    await scene.store.accept(scene.new, (scene.new.requested,))
    await scene.handle("analyzer-on-execution-requested", scene.new.requested.event_id)
    assert (await scene.current()).state == "failed"
