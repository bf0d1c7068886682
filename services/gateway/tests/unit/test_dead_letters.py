"""The handler of dead letters: ends the workflow that waits for one, and is safe to run twice."""

from collections.abc import Sequence
from uuid import uuid4

import pytest

from pml_common.bus.memory import MemoryBus
from pml_common.bus.port import DeadMessage
from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import WorkflowFinished
from pml_gateway.adapters.bus.outbox_relay import OutboxRelay
from pml_gateway.adapters.memory.notifier import MemoryNotifier
from pml_gateway.adapters.memory.workflows import MemoryWorkflowStore
from pml_gateway.application.runs import Runs
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance
from pml_gateway.entrypoints.bus.on_dead_letter import on_dead_letter
from services.gateway.tests.examples import AT, RULES, analyzed, finished, workflow
from services.gateway.tests.fake_services import closing, journaled


class Harness:
    """A running workflow, and the handler on its store."""

    def __init__(self) -> None:
        self.store, self.bus = MemoryWorkflowStore(), MemoryBus()
        self.new = workflow()

    async def start(self) -> Workflow:
        """Advance it to running."""
        await self.store.accept(self.new)

        def begin(before: Workflow) -> Step:
            return advance(before, Analyzed(analyzed(self.new), AT), RULES)

        taken = await self.store.change(self.new.scope, self.new.workflow_id, begin)
        assert taken is not None
        return taken[0]

    async def dead_letter(
        self, consumer: str, message_id: object, fact: Message | None = None
    ) -> None:
        """Handle a dead letter twice."""
        letter = DeadMessage(
            consumer=consumer,
            message_id=str(message_id),
            scope=self.new.scope,
            entity=str(self.new.workflow_id),
            message=fact,
            reason="why",
        )
        for _ in range(2):
            published = await on_dead_letter(
                letter,
                journal=self.bus,
                workflows=self.store,
                notifier=MemoryNotifier(),
                runs=Runs(self.store),
                relay=OutboxRelay(self.store.outbox, self.bus),
                rules=RULES,
                now=lambda: AT,
            )
            assert published == ()

    async def end(self, fact: RunFinished) -> None:
        """Dead-letter the run's end at the gateway."""
        await self.dead_letter("gateway-on-run-finished", fact.event_id, fact)

    async def now(self) -> Workflow:
        found = await self.store.get(self.new.scope, self.new.workflow_id)
        assert found is not None
        return found

    async def ends(self) -> Sequence[WorkflowFinished]:
        entity = str(self.new.workflow_id)
        past = [each.message for each in await self.bus.history(self.new.scope, entity)]
        return [message for message in past if isinstance(message, WorkflowFinished)]


@pytest.fixture
def harness() -> Harness:
    return Harness()


async def test_a_command_that_was_given_up_ends_its_workflow_once_and_says_so(
    harness: Harness,
) -> None:
    running = await harness.start()
    await harness.dead_letter("executor-on-run-workflow", running.run_command_id)
    after = await harness.now()
    assert (after.state, after.error and after.error.kind) == ("failed", "internal")
    [end] = await harness.ends()
    assert end.error == after.error


async def test_an_end_that_the_journal_does_not_say_ends_nothing(harness: Harness) -> None:
    running = await harness.start()
    stale = await journaled(harness.bus, finished(running))
    await harness.bus.publish(closing(stale).model_copy(update={"event_id": uuid4()}))
    await harness.end(stale)
    await harness.end(stale.model_copy(update={"journal_sequence": None}))
    assert (await harness.now()).state == "running"


async def test_an_end_that_the_journal_says_and_nobody_could_keep_ends_its_workflow(
    harness: Harness,
) -> None:
    run = await journaled(harness.bus, finished(await harness.start()))
    await harness.end(run)
    [end] = await harness.ends()
    assert end.error is not None
    assert "the run succeeded by its journal, and its end could not be stored" in end.error.message


async def test_an_end_of_which_the_journal_lost_the_append_ends_its_workflow(
    harness: Harness,
) -> None:
    end = await journaled(harness.bus, finished(await harness.start()))
    harness.bus.broker.stream("evt", "executor").messages.clear()
    await harness.end(end)
    assert (await harness.now()).state == "failed"


async def test_what_is_not_waited_for_ends_nothing(harness: Harness) -> None:
    await harness.dead_letter("executor-on-run-workflow", uuid4())  # there is no such workflow
    running = await harness.start()
    await harness.dead_letter("registry-on-execution-analyzed", uuid4())
    await harness.dead_letter("executor-on-run-workflow", uuid4())
    cause = ids.effect_id(running.requested.event_id, "execution-analyzed")
    await harness.dead_letter("gateway-on-execution-analyzed", cause)
    assert (await harness.now()) == running


async def test_a_request_that_was_given_up_ends_before_it_ran(harness: Harness) -> None:
    await harness.store.accept(harness.new)
    await harness.dead_letter("analyzer-on-execution-requested", harness.new.requested.event_id)
    assert (await harness.now()).state == "failed"
