"""Workflows that wait for a person, and the end of everything in between."""

import os
import signal
from typing import cast

import httpx2

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.catalog import SERVICES
from tests.e2e.harness import Json, World


async def decide(world: World, workflow: str, **body: object) -> httpx2.Response:
    """Answer what a workflow waits for."""
    path = f"/api/workflows/{workflow}/approval"
    return await world.http.post(path, json=body, headers=world.approver)


async def waiting(world: World, workflow: str, before: object) -> Json:
    """The workflow once it waits for another approval than the one `before`."""

    async def waits() -> Json | None:
        try:
            found = await world.workflow(workflow)
        except httpx2.TransportError:
            return None
        assert found["error"] is None, found
        approval = cast(Json, found["approval"])
        return found if approval["approval_id"] != before and not approval["outcome"] else None

    return await eventually(waits, within=30.0)


async def restart_everything(world: World) -> None:
    """Kill every service and wait until all are there again."""
    pids = {part: world.stack.pid_of(part) for part in SERVICES}
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    await eventually(
        lambda: all(
            part in world.stack.parts and world.stack.pid_of(part) != pids[part]
            for part in SERVICES
        ),
        within=60.0,
    )

    async def healthy() -> bool:
        try:
            return (await world.http.get("/healthz")).status_code == 200
        except httpx2.TransportError:
            return False

    await eventually(healthy, within=30.0)
