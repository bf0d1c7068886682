"""Contract of the store of accepted definitions."""

import pytest

from pml_common.contracts.tool import ToolDefinition
from services.gateway.tests.conftest import Stores
from services.gateway.tests.support.builders import AT, ELSEWHERE, SCOPE, later

pytestmark = pytest.mark.integration

READ = ToolDefinition(server="fs", name="read", description="a\x00b", meta={"a": [1]})
OTHER = READ.model_copy(update={"description": "other"})
WRITE = ToolDefinition(server="fs", name="write")


async def test_the_first_definition_stays(stores: Stores) -> None:
    store = stores.accepted
    assert await store.meet(SCOPE, [READ], AT) == [READ]
    met = await store.meet(SCOPE, [OTHER, WRITE], later(1))
    assert sorted(met, key=lambda tool: tool.name) == [READ, WRITE]


async def test_an_accepted_definition_replaces_it_in_its_scope_alone(stores: Stores) -> None:
    store = stores.accepted
    for scope in (SCOPE, ELSEWHERE):
        await store.meet(scope, [READ], AT)
    for _ in range(2):
        await store.accept(SCOPE, [OTHER, WRITE], "noor", later(1))
        met = await store.meet(SCOPE, [READ, WRITE], later(2))
        assert sorted(met, key=lambda tool: tool.name) == [OTHER, WRITE]
    assert await store.meet(ELSEWHERE, [OTHER], AT) == [READ]
