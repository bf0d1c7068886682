"""Reading only the last message of a type about one entity."""

from uuid import UUID, uuid4

from libs.pml_common.tests.support.harness import BusHarness
from pml_common.contracts import catalog
from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.scope import Scope

SCOPE = Scope(org="acme", project="webapp")
OTHER_SCOPE = Scope(org="rival", project="webapp")


def entry(workflow: UUID) -> TraceRecorded:
    return TraceRecorded(event_id=uuid4(), scope=SCOPE, workflow_id=workflow, entries=())


async def test_the_last_of_a_type_about_an_entity_is_read_alone(harness: BusHarness) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    of = catalog.TRACE_RECORDED
    assert await bus.last_of(of, SCOPE, str(workflow)) is None
    messages = [entry(workflow) for _ in range(3)]
    for message in messages:
        await bus.publish(message)
    await bus.publish(entry(uuid4()))
    last = await bus.last_of(of, SCOPE, str(workflow))
    assert last is not None
    assert (last.sequence, last.message) == (3, messages[-1])
    assert await bus.last_of(of, OTHER_SCOPE, str(workflow)) is None
    assert await bus.last_of(catalog.RUN_FINISHED, SCOPE, str(workflow)) is None
