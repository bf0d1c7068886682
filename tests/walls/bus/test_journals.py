"""The NATS password of the executor, without its key, adds nothing to a journal at any place."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from libs.pml_common.tests.support.builders import after, example
from libs.pml_common.tests.support.fakes import RecordingHandler
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.nats_accounts import NatsAccount
from pml_common.bus import codec, names
from pml_common.bus.errors import Fenced
from pml_common.bus.identity import SIGNATURE, Identity, all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.run_journal import StoredRun, read_run
from pml_common.contracts import catalog
from pml_common.contracts.catalog import MessageType
from pml_common.contracts.executor import JournalAppend
from pml_common.signing import SigningKey, TrustedKeys
from pml_common.testing.memory_broker import MemoryBroker, MemoryPayloads
from tests.walls.bus.intruder import Intruder
from tests.walls.bus.test_attacks import GET_BODY, SCOPE, Walled, letters_of

pytestmark = pytest.mark.integration

STRANGER = Identity([SigningKey.generate("executor")], TrustedKeys())
FORGED: dict[str, MessageType[JournalAppend]] = {
    "entry": catalog.TRACE_RECORDED,
    "end": catalog.RUN_FINISHED,
    "park": catalog.WORKFLOW_PARKED,
}
CONSUMERS = {
    "end": replace(catalog.GATEWAY_ON_RUN_FINISHED, batch=None),
    "park": catalog.GATEWAY_ON_WORKFLOW_PARKED,
}
PLACES: dict[str, tuple[MessageType[JournalAppend], ...]] = {
    "first": (),
    "between": (catalog.TRACE_RECORDED,),
    "after a park": (catalog.TRACE_RECORDED, catalog.WORKFLOW_PARKED),
    "after the end": (catalog.TRACE_RECORDED, catalog.RUN_FINISHED),
}


class Run:
    """A run whose executor is honest, and its journal as its readers see it."""

    def __init__(self, executor: NatsBus, gateway: NatsBus) -> None:
        self._executor = executor
        self._gateway = gateway
        self.workflow_id = uuid4()
        self.last = 0
        self.written: list[UUID] = []

    def append(
        self, of: MessageType[JournalAppend], workflow_id: UUID | None = None
    ) -> JournalAppend:
        """Build an append that follows the last one."""
        whose = {"scope": SCOPE, "workflow_id": workflow_id or self.workflow_id}
        return after(self.last, example(of).model_copy(update={**whose, "event_id": uuid4()}))

    async def write(self, of: MessageType[JournalAppend]) -> None:
        """Append as its executor does."""
        append = self.append(of)
        self.last = await self._executor.publish(append)
        self.written.append(append.event_id)

    async def read(self) -> StoredRun:
        """Read the journal as executors do, and expect gateways to read the same."""
        read = await read_run(self._executor, SCOPE, self.workflow_id, "signed")
        same = await read_run(self._gateway, SCOPE, self.workflow_id, "signed")
        assert (same.appends, same.last, same.fault) == (read.appends, read.last, read.fault)
        assert [*map(str, same.foreign)] == [*map(str, read.foreign)]
        return read


@pytest.fixture
async def walled(nats_account: NatsAccount) -> AsyncIterator[Walled]:
    async with AsyncExitStack() as stack:
        yield Walled(nats_account, stack)


@pytest.fixture
async def run(walled: Walled) -> Run:
    return Run(await walled.bus("executor"), await walled.bus("gateway"))


async def headers_of(append: JournalAppend, by: Identity) -> Mapping[str, str]:
    """Return the headers of an append that somebody signs, behind its fence."""
    return (await codec.seal(append, {}, MemoryPayloads(MemoryBroker()), by)).headers


async def add(intruder: Intruder, append: JournalAppend, headers: Mapping[str, str]) -> bytes:
    subject = names.subject_of(catalog.type_of(append), append.scope, append.entity)
    return await intruder.request(subject, codec.encode(append), **headers)


@pytest.mark.parametrize("signed_by", ["nobody", "a stranger", "its executor, for another run"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("forged", FORGED)
async def test_what_no_executor_signed_is_no_part_of_a_journal(
    walled: Walled, run: Run, forged: str, place: str, signed_by: str
) -> None:
    for each in PLACES[place]:
        await run.write(each)
    lie = run.append(FORGED[forged])
    headers = dict(await headers_of(lie, STRANGER))
    if signed_by == "nobody":
        del headers[SIGNATURE]
    elif signed_by != "a stranger":
        other = lie.model_copy(update={"workflow_id": uuid4()})
        headers[SIGNATURE] = (await headers_of(other, all_services_identity()))[SIGNATURE]
    intruder = await walled.intruder("executor")
    assert b'"error"' not in await add(intruder, lie, headers)
    read = await run.read()
    assert [each.event_id for _, each in read.appends] == run.written
    assert read.fault is None
    [named] = read.foreign
    assert "not believed" in str(named)
    with pytest.raises(Fenced):  # its executor notices
        await run.write(catalog.TRACE_RECORDED)
    run.last = read.last
    await run.write(catalog.RUN_FINISHED)  # and goes on behind it
    read = await run.read()
    assert [each.event_id for _, each in read.appends] == run.written
    assert read.fault is None


@pytest.mark.parametrize("forged", CONSUMERS)
async def test_a_forged_end_or_park_reaches_no_handler(
    walled: Walled, run: Run, forged: str
) -> None:
    gateway, recorder = await walled.bus("gateway"), RecordingHandler()
    await gateway.consume(CONSUMERS[forged], recorder)
    lie = run.append(FORGED[forged])
    await add(await walled.intruder("executor"), lie, await headers_of(lie, STRANGER))
    [reason] = await eventually(lambda: letters_of(walled.account))
    assert "not believed" in reason
    assert recorder.seen == []


@pytest.mark.parametrize("forged", FORGED)
async def test_a_genuine_append_is_stored_at_no_other_place(
    walled: Walled, run: Run, forged: str
) -> None:
    """The intruder reads what the executor signed, and publishes it again behind the last one."""
    await run.write(FORGED[forged])
    subject = names.subject_of(FORGED[forged], SCOPE, str(run.workflow_id))
    intruder = await walled.intruder("executor")
    get = json.dumps({"last_by_subj": subject}).encode()
    own = await intruder.client.request("$JS.API.DIRECT.GET.PML_EXECUTOR_EVT", get)
    headers = {
        name: value for name, value in (own.headers or {}).items() if not name.startswith("Nats-")
    }
    journal = names.entity_filter(SCOPE, str(run.workflow_id), "executor")
    fence = {codec.EXPECTED_LAST: str(run.last), codec.EXPECTED_ON: journal}
    again = {**headers, **fence, codec.MSG_ID: (own.headers or {})[codec.MSG_ID]}
    assert json.loads(await intruder.request(subject, own.data, **again))["duplicate"]
    renamed = {**headers, **fence, codec.MSG_ID: uuid4().hex}  # the server knows it by its id
    assert b'"error"' not in await intruder.request(subject, own.data, **renamed)
    read = await run.read()
    assert [each.event_id for _, each in read.appends] == run.written
    assert [each.is_foreign for each in read.foreign] == [True]


@pytest.mark.parametrize("service", catalog.SERVICES)
async def test_an_answer_of_the_server_is_no_append(walled: Walled, run: Run, service: str) -> None:
    """Any service may have one directed to a journal's subject, and the server stores it there."""
    lie = run.append(catalog.TRACE_RECORDED)
    headers = await headers_of(lie, STRANGER)
    intruder = await walled.intruder(service)
    body = names.body_subject(service, "0" * 64, "0", "0")
    assert b'"error"' not in await intruder.request(body, codec.encode(lie), **headers)
    subject = names.subject_of(catalog.TRACE_RECORDED, SCOPE, str(run.workflow_id))
    get = json.dumps({"last_by_subj": body}).encode()
    await intruder.have_delivered(GET_BODY, get, subject)

    async def is_stored() -> StoredRun | None:
        read = await run.read()
        return read if read.last else None

    read = await eventually(is_stored)
    assert read.appends == ()
    assert [each.is_foreign for each in read.foreign] == [True]
