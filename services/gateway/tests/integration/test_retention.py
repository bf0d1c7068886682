"""Deletion of old workflows from Postgres."""

from datetime import timedelta
from uuid import uuid4

import pytest

from pml_common.storage.schema import open_scoped_schema
from pml_gateway.adapters.stores import postgres_stores
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.result_cache import CachedResult, ResultKey
from services.gateway.tests.support.builders import AT, SCOPE, analyzed, finished, later, workflow
from services.gateway.tests.support.stored import take

pytestmark = pytest.mark.integration


async def test_a_workflow_whose_result_is_cached_stays_until_that_is_over(
    postgres_dsn: str,
) -> None:
    async with open_scoped_schema(postgres_dsn, "gateway", "pml_gateway") as pool:
        stores, new = postgres_stores(pool, 10), workflow()
        await stores.workflows.accept(new, ())
        for cause in (Analyzed(analyzed(new), AT), finished(new, result=1)):
            await take(stores.workflows, new, cause)
        key = ResultKey(SCOPE, uuid4(), 1, "ab" * 32)
        await stores.results.keep(key, CachedResult(new.workflow_id, later(60)))
        old = AT + timedelta(days=1)
        assert await stores.workflows.forget(old, 10) == 0
        await stores.results.forget(later(61))
        assert await stores.workflows.forget(old, 10) == 1
        assert await stores.workflows.get(SCOPE, new.workflow_id) is None
