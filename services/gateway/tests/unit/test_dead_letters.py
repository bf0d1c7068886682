"""The handler of what was given up: it ends what waits for it, and is safe to run twice."""

from collections.abc import Sequence
from uuid import uuid4

import pytest

from pml_common.bus.memory import MemoryBus
from pml_common.bus.port import DeadMessage
from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import WorkflowFinished
from pml_gateway.adapters.memory.workflows import MemoryWorkflowStore
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance
from pml_gateway.entrypoints.bus.on_dead_letter import on_dead_letter
from services.gateway.tests.examples import AT, RULES, analyzed, finished, workflow
from services.gateway.tests.fake_services import closing, founded
from services.gateway.tests.harness import workflow_service


class Ground:
    """A workflow whose run goes on, and the handler on its store."""

    def __init__(self) -> None:
        self.store, self.bus = MemoryWorkflowStore(), MemoryBus()
        self.new = workflow()

    async def start(self) -> Workflow:
        """Let it run."""
        await self.store.accept(self.new)

        def begin(before: Workflow) -> Step:
            return advance(before, Analyzed(analyzed(self.new), AT), RULES)

        taken = await self.store.change(self.new.scope, self.new.workflow_id, begin)
        assert taken is not None
        return taken[0]

    async def hear(self, consumer: str, message_id: object, fact: Message | None = None) -> None:
        """Twice."""
        dead = DeadMessage(
            consumer=consumer,
            message_id=str(message_id),
            scope=self.new.scope,
            entity=str(self.new.workflow_id),
            message=fact,
            reason="why",
        )
        for _ in range(2):
            stated = await on_dead_letter(
                dead,
                workflows=workflow_service(self.store, self.bus),
                store=self.store,
                journal=self.bus,
                now=lambda: AT,
            )
            assert stated == ()

    async def end(self, fact: RunFinished) -> None:
        """The end of the run is given up by the gateway."""
        await self.hear("gateway-on-run-finished", fact.event_id, fact)

    async def now(self) -> Workflow:
        found = await self.store.get(self.new.scope, self.new.workflow_id)
        assert found is not None
        return found

    async def told(self) -> Sequence[WorkflowFinished]:
        entity = str(self.new.workflow_id)
        past = [each.message for each in await self.bus.history(self.new.scope, entity)]
        return [message for message in past if isinstance(message, WorkflowFinished)]


@pytest.fixture
def ground() -> Ground:
    return Ground()


async def test_a_command_that_was_given_up_ends_its_workflow_once_and_says_so(
    ground: Ground,
) -> None:
    running = await ground.start()
    await ground.hear("executor-on-run-workflow", running.run_command_id)
    after = await ground.now()
    assert (after.state, after.error and after.error.kind) == ("failed", "internal")
    [end] = await ground.told()
    assert end.error == after.error


async def test_an_end_that_the_journal_does_not_say_ends_nothing(ground: Ground) -> None:
    running = await ground.start()
    stale = await founded(ground.bus, finished(running))
    await ground.bus.publish(closing(stale).model_copy(update={"event_id": uuid4()}))
    await ground.end(stale)
    await ground.end(stale.model_copy(update={"journal_sequence": None}))
    assert (await ground.now()).state == "running"


async def test_an_end_that_the_journal_says_and_nobody_could_keep_ends_its_workflow(
    ground: Ground,
) -> None:
    end = await founded(ground.bus, finished(await ground.start()))
    await ground.end(end)
    [told] = await ground.told()
    assert told.error is not None
    assert "the run succeeded by its journal, and its end could not be kept" in told.error.message


async def test_an_end_of_which_the_journal_lost_the_append_ends_its_workflow(
    ground: Ground,
) -> None:
    end = await founded(ground.bus, finished(await ground.start()))
    ground.bus.broker.stream("evt", "executor").messages.clear()
    await ground.end(end)
    assert (await ground.now()).state == "failed"


async def test_what_is_not_waited_for_ends_nothing(ground: Ground) -> None:
    await ground.hear("executor-on-run-workflow", uuid4())  # there is no such workflow
    running = await ground.start()
    await ground.hear("registry-on-execution-analyzed", uuid4())
    await ground.hear("executor-on-run-workflow", uuid4())
    cause = ids.effect_id(running.requested.event_id, "execution-analyzed")
    await ground.hear("gateway-on-execution-analyzed", cause)
    assert (await ground.now()) == running


async def test_a_request_that_was_given_up_ends_before_it_ran(ground: Ground) -> None:
    await ground.store.accept(ground.new)
    await ground.hear("analyzer-on-execution-requested", ground.new.requested.event_id)
    assert (await ground.now()).state == "failed"
