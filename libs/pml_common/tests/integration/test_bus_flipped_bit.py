"""A bit of a stored append flips on the disk of a single server: the journal shows it."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest

from libs.pml_local.tests.support.harness import RunningNats, eventually
from pml_common.bus.errors import Unreadable
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.run_journal import read_run
from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.scope import Scope
from pml_common.contracts.trace import LogWritten

pytestmark = pytest.mark.integration

SCOPE = Scope(org="acme", project="webapp")


async def appended(bus: NatsBus, workflow: UUID, count: int) -> int:
    """Write a journal; return the sequence of its last append."""
    last = 0
    for n in range(count):
        line = LogWritten(trace_id=workflow, ts=n, level="info", message=f"line {n} of it")
        append = TraceRecorded(
            event_id=uuid4(), scope=SCOPE, workflow_id=workflow, entries=(line,), previous=last
        )
        last = await bus.publish(append)
    return last


def flip_a_bit(store: Path, of: bytes) -> None:
    """Flip one bit of a text on the server's disk."""
    [block] = [each for each in store.rglob("*.blk") if of in each.read_bytes()]
    data = bytearray(block.read_bytes())
    data[data.index(of)] ^= 1
    block.write_bytes(bytes(data))


async def test_a_flipped_bit_in_a_stored_append_shows_in_the_next_one(
    nats_server: RunningNats, tmp_path: Path
) -> None:
    """The server omits the message without an error."""
    workflow = uuid4()
    bus = await NatsBus.connect(
        nats_server.url, service="executor", identity=all_services_identity()
    )
    await appended(bus, workflow, 5)
    whole = await read_run(bus, SCOPE, workflow, "signed")
    assert (len(whole.appends), whole.fault) == (5, None)
    await nats_server.stop()
    flip_a_bit(tmp_path / "nats" / "store", b"line 2 of it")
    await nats_server.start()
    await eventually(bus.healthy)
    torn = await read_run(bus, SCOPE, workflow, "signed")
    assert [sequence for sequence, _ in torn.appends] == [1, 2, 4, 5]
    why = "it was stored after append 3, and append 2 precedes it now"
    assert torn.fault == f"append 4: {why}"
    with pytest.raises(Unreadable, match=why):
        torn.require_whole()
    await bus.drain(0.1)
