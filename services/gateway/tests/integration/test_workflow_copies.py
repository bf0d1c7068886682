"""Steps taken on a copy of a workflow: never on one that is out of date."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from pml_common.storage.schema import open_schema
from pml_gateway.adapters.postgres.workflows import PostgresWorkflowStore
from pml_gateway.adapters.workflow_cache import WorkflowCache
from pml_gateway.domain.workflow.events import Analyzed, NotAnalyzed, RunEnded
from services.gateway.tests.examples import AT, SCOPE, analyzed, finished, later, rejected, workflow
from services.gateway.tests.stored import cause_of, take


@dataclass
class Replicas:
    """Two gateways' stores on one database."""

    ours: PostgresWorkflowStore
    theirs: PostgresWorkflowStore


@pytest.fixture
async def replicas(postgres_dsn: str) -> AsyncIterator[Replicas]:
    async with open_schema(postgres_dsn, "gateway", "pml_gateway") as pool:
        yield Replicas(
            PostgresWorkflowStore(pool, patience_s=10), PostgresWorkflowStore(pool, patience_s=10)
        )


@pytest.mark.integration
async def test_a_step_that_another_replica_took_is_not_taken_on_our_copy(
    replicas: Replicas,
) -> None:
    new = workflow()
    await replicas.ours.accept(new)
    failed = await take(replicas.theirs, new, NotAnalyzed(rejected(new), AT))
    late = await take(replicas.ours, new, Analyzed(analyzed(new), AT))
    assert late.effects == ()
    assert await replicas.ours.get(SCOPE, new.workflow_id) == failed.workflow


@pytest.mark.integration
async def test_a_message_that_another_replica_handled_states_its_facts_again(
    replicas: Replicas,
) -> None:
    new = workflow()
    cause = cause_of(new)
    await replicas.ours.accept(new)
    first = await take(replicas.theirs, new, Analyzed(analyzed(new), AT), cause)
    again = await take(replicas.ours, new, Analyzed(analyzed(new), AT), cause)
    assert first.effects
    assert tuple(again.effects) == tuple(first.effects)
    assert again.workflow is None


@pytest.mark.integration
async def test_each_replica_goes_on_where_the_other_stopped(replicas: Replicas) -> None:
    new = workflow()
    await replicas.ours.accept(new)
    running = await take(replicas.theirs, new, Analyzed(analyzed(new), AT))
    ended = await take(replicas.ours, new, RunEnded(finished(new), later(1)))
    assert running.workflow is not None
    assert ended.workflow is not None
    assert ended.workflow.state == "succeeded"
    assert ended.workflow.analysis == running.workflow.analysis
    assert await replicas.theirs.get(SCOPE, new.workflow_id) == ended.workflow


def test_copies_are_few_each_serves_once_and_none_is_of_what_waits_for_a_person() -> None:
    copies, kept = WorkflowCache(most=2), [workflow(key=key) for key in "abc"]
    for each in kept:
        copies.keep(each, 7)
    copies.keep(replace(workflow(key="d"), state="awaiting_approval"), 1)
    found = [copies.take(SCOPE, each.workflow_id) for each in kept]
    assert [None if copy is None else copy.workflow for copy in found] == [None, *kept[1:]]
    assert all(copies.take(SCOPE, each.workflow_id) is None for each in kept)
