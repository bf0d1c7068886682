"""A full disk under the whole stack: reported in time, and recovered from once there is room."""

import httpx2
import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError as NoReplyInTime

from libs.pml_local.tests.support.harness import eventually, reachable_folder
from libs.pml_local.tests.support.patience import PATIENCE_S
from libs.pml_local.tests.support.small_disk import MIB, small_disk
from pml_common.bus import names
from pml_local.composition import StackOptions
from pml_local.events import Event, PartStalled
from pml_local.ports import free_port
from pml_local.stack import embedded_stack

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

DISK_MIB, MIN_FREE_MIB = 320, 48


async def _execute(http: httpx2.AsyncClient) -> httpx2.Response:
    return await http.post("/api/execute", json={"code": "return 6 * 7;"})


async def _write_without_room(url: str) -> None:
    """Publish a message that does not fit on the disk, which stops a NATS stream."""
    client = Client()
    await client.connect(url)
    try:
        with pytest.raises(NoReplyInTime):
            await client.request(
                names.write_check("evt", "gateway"), bytes(MIB // 2), timeout=1.0
            )  # waits: no reply
    finally:
        await client.close()


async def test_a_full_disk_is_reported_and_the_stack_recovers_once_there_is_room() -> None:
    events: list[Event] = []
    with reachable_folder() as folder, small_disk(folder / "disk", DISK_MIB) as disk:
        options = StackOptions(
            home=disk.folder / "pml",
            gateway_port=free_port(),
            env={"PML_GATEWAY_MIN_FREE_MIB": str(MIN_FREE_MIB)},
            approver_key=folder / "approver.key",
            storage_probe_interval=0.5,
        )
        async with (
            embedded_stack(options, events.append) as stack,
            httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http,
        ):
            assert (await _execute(http)).json()["result"] == 42

            disk.fill(leave=MIN_FREE_MIB * MIB // 2)
            refused = await eventually(lambda: _refused(http))
            assert int(refused.headers["retry-after"]) > 0
            assert f"the disk of {stack.home}" in refused.text
            assert "bytes left" in refused.text

            disk.fill()
            await _write_without_room(stack.nats_url)
            assert "bytes left" in (await http.get("/healthz")).json()["checks"]["disk"]

            async def reported() -> bool:
                return (await http.get("/healthz")).status_code == 503

            await eventually(reported)

            disk.make_room()
            await eventually(lambda: [e for e in events if isinstance(e, PartStalled)])

            async def works() -> bool:
                answer = await _execute(http)
                return answer.status_code == 200 and answer.json()["status"] == "success"

            await eventually(works)

            async def healthy() -> bool:
                return (await http.get("/healthz")).status_code == 200

            await eventually(healthy)
            (stalled,) = [e for e in events if isinstance(e, PartStalled)]
            assert stalled.name == "nats"
            assert "NATS stores nothing" in stalled.reason


async def _refused(http: httpx2.AsyncClient) -> httpx2.Response | None:
    answer = await _execute(http)
    return answer if answer.status_code == 503 else None
