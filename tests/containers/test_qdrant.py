"""Qdrant on containers, where its image can be had."""

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.containers.conftest import has_qdrant
from tests.containers.stack import ContainerStack
from tools.compose.project import BASE

pytestmark = pytest.mark.containers

CONTAINER = "qdrant-1"
QUESTION = {"intent": "count one step", "type": "tool"}


async def test_searches_go_on_without_qdrant_and_it_is_filled_again(
    containers: ContainerStack,
) -> None:
    if not has_qdrant(containers.engine, BASE):
        pytest.skip(
            "QDRANT WAS NOT TRIED ON CONTAINERS: the engine has no image of it; the adapter is "
            "tested by services/registry on the client's local mode"
        )

    async def degraded() -> bool:
        page = await containers.http.post("/api/discover", json=QUESTION)
        assert page.json()["hits"], page.text
        return page.json()["degraded"]

    async def well() -> bool:
        return not await degraded()

    await eventually(well)
    await containers.kill(CONTAINER)
    await eventually(degraded)
    await containers.start(CONTAINER)
    await eventually(well)
