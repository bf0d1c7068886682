"""Steps on cached workflows: never stored if the cached one is out of date."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from pml_common.storage.schema import open_scoped_schema
from pml_gateway.adapters.postgres.workflows import PostgresWorkflowStore
from pml_gateway.adapters.workflow_cache import WorkflowCache
from pml_gateway.domain.workflow.events import Analyzed, NotAnalyzed
from services.gateway.tests.support.builders import (
    AT,
    SCOPE,
    analyzed,
    finished,
    rejected,
    workflow,
)
from services.gateway.tests.support.stored import cause_of, take


@dataclass
class Replicas:
    """The stores of two gateways on one database."""

    ours: PostgresWorkflowStore
    theirs: PostgresWorkflowStore


@pytest.fixture
async def replicas(postgres_dsn: str) -> AsyncIterator[Replicas]:
    async with open_scoped_schema(postgres_dsn, "gateway", "pml_gateway") as pool:
        yield Replicas(
            PostgresWorkflowStore(pool, patience_s=10), PostgresWorkflowStore(pool, patience_s=10)
        )


@pytest.mark.integration
async def test_a_step_that_another_replica_took_is_not_taken_on_our_copy(
    replicas: Replicas,
) -> None:
    new = workflow()
    await replicas.ours.accept(new, (new.requested,))
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
    await replicas.ours.accept(new, (new.requested,))
    first = await take(replicas.theirs, new, Analyzed(analyzed(new), AT), cause)
    again = await take(replicas.ours, new, Analyzed(analyzed(new), AT), cause)
    assert first.effects
    assert tuple(again.effects) == tuple(first.effects)
    assert again.workflow is None


@pytest.mark.integration
async def test_each_replica_goes_on_where_the_other_stopped(replicas: Replicas) -> None:
    new = workflow()
    await replicas.ours.accept(new, (new.requested,))
    running = await take(replicas.theirs, new, Analyzed(analyzed(new), AT))
    ended = await take(replicas.ours, new, finished(new))
    assert running.workflow is not None
    assert ended.workflow is not None
    assert ended.workflow.state == "succeeded"
    assert ended.workflow.analysis == running.workflow.analysis
    assert await replicas.theirs.get(SCOPE, new.workflow_id) == ended.workflow


@pytest.mark.integration
async def test_an_end_is_stored_although_our_copy_is_out_of_date(replicas: Replicas) -> None:
    new = workflow()
    await replicas.ours.accept(new, (new.requested,))
    await take(replicas.theirs, new, Analyzed(analyzed(new), AT))
    [ended] = await replicas.ours.end([finished(new)])
    assert ended.state == "succeeded"
    assert await replicas.theirs.get(SCOPE, new.workflow_id) == ended


def test_the_cache_is_bounded_and_each_entry_is_used_once() -> None:
    cache, kept = WorkflowCache(most=2), [workflow(key=key) for key in "abc"]
    for each in kept:
        cache.put(each, 7)
    cache.put(replace(workflow(key="d"), state="awaiting_approval"), 1)
    found = [cache.take(SCOPE, each.workflow_id) for each in kept]
    assert [None if one is None else one.workflow for one in found] == [None, *kept[1:]]
    assert all(cache.take(SCOPE, each.workflow_id) is None for each in kept)
