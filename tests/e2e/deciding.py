"""Decisions on approvals, and a restart of the whole stack in between."""

import os
import signal
from typing import cast

import httpx2

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.catalog import SERVICES
from tests.e2e.harness import Json, StackHarness


async def decide(harness: StackHarness, workflow: str, **body: object) -> httpx2.Response:
    """Decide a workflow's approval."""
    path = f"/api/workflows/{workflow}/approval"
    return await harness.http.post(path, json=body, headers=harness.approver)


async def waiting(harness: StackHarness, workflow: str, before: object) -> Json:
    """Wait until the workflow needs another approval than `before`."""

    async def waits() -> Json | None:
        try:
            found = await harness.workflow(workflow)
        except httpx2.TransportError:
            return None
        assert found["error"] is None, found
        approval = cast(Json, found["approval"])
        return found if approval["approval_id"] != before and not approval["outcome"] else None

    return await eventually(waits)


async def restart_everything(harness: StackHarness) -> None:
    """Kill every service and wait until all are healthy again."""
    pids = {part: harness.stack.pid_of(part) for part in SERVICES}
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    await eventually(
        lambda: all(
            part in harness.stack.parts and harness.stack.pid_of(part) != pids[part]
            for part in SERVICES
        ),
    )

    async def healthy() -> bool:
        try:
            return (await harness.http.get("/healthz")).status_code == 200
        except httpx2.TransportError:
            return False

    await eventually(healthy)
