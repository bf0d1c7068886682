"""Rebuilds of what was learned over REST: for approvers, in their own scope."""

from uuid import UUID

import pytest

from pml_common.contracts import catalog
from pml_common.contracts.learner import RebuildLearning, RebuildProgress
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.harness import APPROVER, Worlds

pytestmark = pytest.mark.integration

PROGRESS = RebuildProgress(rebuilt=1, changed=1, traces=7, missing=0, left=2, after=UUID(int=1))


async def test_an_approver_rebuilds_and_nobody_else(world: Worlds) -> None:
    asked: list[RebuildLearning] = []

    async def rebuild(query: RebuildLearning) -> RebuildProgress:
        asked.append(query)
        return PROGRESS

    async with world() as w:
        await w.peers.bus.serve(catalog.REBUILD_LEARNING, rebuild)
        path, body = "/api/learning/rebuild", {"after": str(UUID(int=1))}
        assert (await w.http.post(path, json=body)).status_code == 401
        answer = await w.http.post(path, json=body, headers=APPROVER)
        assert (answer.status_code, answer.json()) == (200, PROGRESS.model_dump(mode="json"))
        wrong = await w.http.post(path, json={"capability_id": "fs:a"}, headers=APPROVER)
        assert wrong.status_code == 422
    assert asked == [RebuildLearning(scope=SCOPE, after=UUID(int=1))]
