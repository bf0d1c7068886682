"""New work is refused before a disk is full, and while NATS stores nothing."""

from pathlib import Path

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.watch import BusWatch
from services.gateway.tests.support.harness import World, Worlds

pytestmark = pytest.mark.integration

MORE_THAN_ANY_DISK_MIB = 2**50


async def _refusal(w: World) -> str:
    answer = await w.http.post("/api/execute", json={"code": "return 1;"})
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json()["error"]["kind"] == "unavailable"
    assert (await w.http.get("/api/workflows")).json()["total"] == 0
    return answer.json()["error"]["message"]


async def test_with_a_full_disk_new_work_is_refused_with_the_folder_and_the_space_left(
    tmp_path: Path, world: Worlds
) -> None:
    async with world(
        gateway_data_folders=(tmp_path,), gateway_min_free_mib=MORE_THAN_ANY_DISK_MIB
    ) as w:
        message = await _refusal(w)
        assert f"the disk of {tmp_path} has " in message
        assert " bytes left" in message
        assert "PML_GATEWAY_MIN_FREE_MIB" in message
        health = await w.http.get("/healthz")
        assert health.status_code == 200, "what was accepted goes on"
        assert health.json()["checks"]["disk"] == message


async def test_with_space_left_or_without_folders_to_watch_work_is_accepted(
    tmp_path: Path, world: Worlds
) -> None:
    folders = (tmp_path, tmp_path / "nowhere")
    for watched, least in ((folders, 0), ((), MORE_THAN_ANY_DISK_MIB)):
        async with world(gateway_data_folders=watched, gateway_min_free_mib=least) as w:
            assert (await w.execute())["status"] == "success"
            assert (await w.http.get("/healthz")).json()["checks"]["disk"] == "ok"


async def test_while_nats_answers_and_stores_nothing_health_says_so_and_nothing_is_accepted(
    world: Worlds,
) -> None:
    async with world() as w:
        w.broker.refusal = "NATS stores nothing: no space left on device"
        health = await w.http.get("/healthz")
        assert health.status_code == 503
        assert health.json()["checks"]["nats"] == w.broker.refusal
        assert await _refusal(w) == w.broker.refusal
        w.broker.refusal = None

        async def healthy() -> bool:
            return (await w.http.get("/healthz")).status_code == 200

        await eventually(healthy)
        assert (await w.execute())["status"] == "success"


class _Counting(MemoryBus):
    """Counts the checks."""

    tried = 0

    async def refusal(self) -> str | None:
        self.tried += 1
        return None


async def test_no_request_checks_whether_nats_stores() -> None:
    bus = _Counting()
    watch = BusWatch(bus)
    for _ in range(3):
        await watch.require()
    assert bus.tried == 0
    for _ in range(3):
        await watch.look()
        assert await watch.check() is None
    assert bus.tried == 1
