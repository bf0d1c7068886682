"""A gateway decides on workflows of its own scope alone: it has no other's tools and policy."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.decision import Policy
from pml_common.storage.scoped import ScopedPools
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.stores import postgres_stores
from pml_gateway.app import register_handlers
from pml_gateway.parts import Parts
from services.gateway.tests.support.builders import ELSEWHERE, SCOPE, analyzed, workflow
from services.gateway.tests.support.harness import FakeServers, World, Worlds, assembled, settings

pytestmark = pytest.mark.integration

MANY = 12


@asynccontextmanager
async def elsewhere(w: World, pool: ScopedPools) -> AsyncGenerator[Parts]:
    """Run a gateway of another scope, which denies every tool, on the same bus and database."""
    denying = Policy(read_only="deny", otherwise="deny")
    bus, chosen = MemoryBus(w.broker), settings(gateway_org=ELSEWHERE.org, gateway_policy=denying)
    other = assembled(chosen, bus, postgres_stores(pool, PATIENCE_S), FakeServers())
    await register_handlers(other)
    yield other
    other.notifier.close()
    await bus.drain(1)


async def test_analyses_are_decided_on_by_a_gateway_of_their_scope(
    world: Worlds, pool: ScopedPools
) -> None:
    """By the other one they would be denied."""
    async with world() as w, elsewhere(w, pool):
        asked = [workflow(at=w.parts.bus.now()) for _ in range(MANY)]
        for each in asked:
            await w.kept.accept(each, ())
            await w.peers.bus.publish(analyzed(each))

        async def state_of(workflow_id: UUID) -> str | None:
            known = await w.parts.workflows.known(SCOPE, workflow_id)
            return None if known is None or known.state in ("requested", "running") else known.state

        for each in asked:
            assert await eventually(lambda each=each: state_of(each.workflow_id)) == "succeeded"
        assert len(w.peers.runs) == MANY


async def test_what_is_due_in_another_scope_is_left_to_its_gateway(
    world: Worlds, pool: ScopedPools
) -> None:
    async with world() as w, elsewhere(w, pool) as other:
        asked = await w.execute("ask")
        assert asked["status"] == "approval_required"
        due = w.parts.bus.now().replace(year=2100)
        assert await other.stores.workflows.due(ELSEWHERE, due, 10) == []
        assert await w.kept.due(SCOPE, due, 10) == [UUID(asked["workflow_id"])]
