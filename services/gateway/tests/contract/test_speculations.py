"""Contract of the store of speculated runs."""

from uuid import UUID

import pytest

from pml_common.contracts.error import WorkflowError
from pml_gateway.domain.api.speculation_threshold import MOST_PER_HOUR, Opinion
from pml_gateway.domain.workflow.deletion import deleted
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.conftest import Stores
from services.gateway.tests.support.builders import (
    AT,
    ELSEWHERE,
    SCOPE,
    analyzed,
    finished,
    later,
    workflow,
)
from services.gateway.tests.support.stored import NASTY, take

pytestmark = pytest.mark.integration

ERROR = WorkflowError(kind="user_error", message=NASTY)


async def ended(stores: Stores, key: str, error: WorkflowError | None = None) -> Workflow:
    new = workflow(key=key)
    await stores.workflows.accept(new, ())
    analysis = analyzed(new, "allow")
    known = (await take(stores.workflows, new, Analyzed(analysis, AT), analysis)).workflow
    assert known is not None
    (over,) = await stores.workflows.end([finished(known, error=error)])
    return over


async def test_a_run_is_stored_once_with_what_became_of_it(stores: Stores) -> None:
    runs, good, bad = stores.speculated, await ended(stores, "a"), await ended(stores, "b", ERROR)
    for _ in range(2):
        await runs.add(SCOPE, good.workflow_id, "mira", AT)
        await runs.add(SCOPE, bad.workflow_id, NASTY, later(1))
        await runs.add(SCOPE, UUID(int=5), "ben", later(2))
    found = await runs.since(SCOPE, AT)
    assert [(each.state, each.error) for each in found] == [
        (None, None),
        ("failed", bad.run.error if bad.run else None),
        ("succeeded", None),
    ]
    assert [each.at for each in found] == [later(2), later(1), AT]
    assert [each.workflow_id for each in await runs.since(SCOPE, later(2))] == [UUID(int=5)]
    assert await runs.since(ELSEWHERE, AT) == []


async def test_each_principal_has_one_opinion_of_a_guess_and_none_of_other_runs(
    stores: Stores,
) -> None:
    runs, one, other = stores.speculated, UUID(int=1), UUID(int=2)
    await runs.add(SCOPE, one, "mira", AT)
    for useful in (True, False):
        await runs.judge(SCOPE, one, Opinion("mira", useful, later(3)))
        await runs.judge(SCOPE, one, Opinion("noor", True, later(2)))
        await runs.judge(SCOPE, other, Opinion("mira", useful, later(2)))
        await runs.judge(ELSEWHERE, one, Opinion("mira", useful, later(2)))
    (found,) = await runs.since(SCOPE, AT)
    assert set(found.opinions) == {
        Opinion("mira", False, later(3)),
        Opinion("noor", True, later(2)),
    }


async def test_a_burst_of_one_principal_is_not_stored(stores: Stores) -> None:
    runs = stores.speculated
    for number in range(MOST_PER_HOUR + 3):
        await runs.add(SCOPE, UUID(int=number), "eve", AT)
    await runs.add(SCOPE, UUID(int=90), "mira", AT)
    await runs.add(SCOPE, UUID(int=91), "eve", later(3600))
    assert len(await runs.since(SCOPE, AT)) == MOST_PER_HOUR + 2
    for number in (*range(MOST_PER_HOUR), 90):
        await runs.judge(SCOPE, UUID(int=number), Opinion("eve", True, AT))
    await runs.judge(SCOPE, UUID(int=0), Opinion("eve", False, AT))
    judged = [each.opinions[0].useful for each in await runs.since(SCOPE, AT) if each.opinions]
    assert sorted(judged) == [False, *[True] * (MOST_PER_HOUR - 1)]


async def test_old_runs_and_those_whose_data_is_deleted_are_forgotten(stores: Stores) -> None:
    runs, over = stores.speculated, await ended(stores, "a")
    await runs.add(SCOPE, over.workflow_id, "mira", later(1))
    await runs.judge(SCOPE, over.workflow_id, Opinion("mira", True, later(1)))
    await runs.add(SCOPE, UUID(int=5), "mira", AT)
    await runs.forget(later(1))
    assert [each.workflow_id for each in await runs.since(SCOPE, AT)] == [over.workflow_id]
    gone = await stores.workflows.change(
        SCOPE, over.workflow_id, lambda before: deleted(before, later(2))
    )
    assert gone is not None
    assert await runs.since(SCOPE, AT) == []
