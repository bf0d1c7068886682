"""Guarantees of publishing, fencing, history, following and listening."""

import asyncio
from uuid import UUID, uuid4

import pytest

from libs.pml_common.tests.support.builders import after, appended_bytes, run_finished
from libs.pml_common.tests.support.fakes import RecordingHandler
from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import codec, names
from pml_common.bus.codec import Envelope
from pml_common.bus.errors import BusError, BusUnavailable, Fenced, Overrun
from pml_common.bus.port import Bus
from pml_common.bus.run_journal import read_run
from pml_common.contracts import catalog
from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.contracts.base import Message
from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.scope import Scope
from pml_common.contracts.trace import LogWritten

SCOPE = Scope(org="acme", project="webapp")
OTHER_SCOPE = Scope(org="acme", project="shop")


def entry(workflow: UUID, text: str = "", scope: Scope = SCOPE) -> TraceRecorded:
    line = LogWritten(trace_id=workflow, ts=0, level="info", message=text)
    return TraceRecorded(
        event_id=uuid4(), scope=scope, workflow_id=workflow, entries=(line,), previous=0
    )


def rejection(workflow: UUID, scope: Scope = SCOPE) -> AnalysisRejected:
    return AnalysisRejected(event_id=uuid4(), scope=scope, workflow_id=workflow, diagnostics=())


async def journal_of(bus: Bus, workflow: UUID) -> list[Message]:
    stored = await bus.history(SCOPE, str(workflow), of=catalog.TRACE_RECORDED)
    return [record.message for record in stored]


async def test_a_message_published_twice_is_stored_once(harness: BusHarness) -> None:
    bus, workflow = await harness.connect("analyzer"), uuid4()
    message = rejection(workflow)
    first = await bus.publish(message)
    again = await (await harness.connect("analyzer")).publish(message)
    assert again == first
    stored = await bus.history(SCOPE, str(workflow))
    assert [record.message for record in stored] == [message]


async def test_the_first_append_expects_nothing_and_each_next_one_the_last(
    harness: BusHarness,
) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    await bus.publish(entry(uuid4()))
    entries = [entry(workflow, str(n)) for n in range(3)]
    last, appends = 0, list[TraceRecorded]()
    for each in entries:
        appends.append(after(last, each))
        last = await bus.publish(appends[-1])
    stored = await bus.history(SCOPE, str(workflow), of=catalog.TRACE_RECORDED)
    assert [record.message for record in stored] == appends
    assert stored[-1].sequence == last


async def test_a_stale_append_is_refused_and_stores_nothing(harness: BusHarness) -> None:
    frozen, heir = await harness.connect("executor"), await harness.connect("executor")
    workflow = uuid4()
    first = after(0, entry(workflow))
    seen = await frozen.publish(first)
    second = after(seen, entry(workflow))
    await heir.publish(second)
    with pytest.raises(Fenced) as refused:
        await frozen.publish(after(seen, entry(workflow)))
    assert refused.value.expected == seen
    with pytest.raises(Fenced):
        await frozen.publish(after(0, entry(workflow)))
    assert await journal_of(frozen, workflow) == [first, second]


async def test_a_stale_append_of_what_another_already_stored_is_refused_too(
    harness: BusHarness,
) -> None:
    """Ids are derived from causes, so both would append the same; only one may go on."""
    frozen, heir = await harness.connect("executor"), await harness.connect("executor")
    workflow = uuid4()
    message = after(0, entry(workflow))
    await heir.publish(message)
    with pytest.raises(Fenced):
        await frozen.publish(message)
    assert await journal_of(heir, workflow) == [message]


async def test_every_type_of_append_is_behind_one_fence(harness: BusHarness) -> None:
    """An executor that was frozen can neither append to a run that has ended, nor end it again."""
    frozen, heir = await harness.connect("executor"), await harness.connect("executor")
    workflow = uuid4()
    seen = await frozen.publish(after(0, entry(workflow)))
    end = run_finished(SCOPE, workflow)
    last = await heir.publish(after(seen, end))
    for late in (entry(workflow), run_finished(SCOPE, workflow)):
        with pytest.raises(Fenced):
            await frozen.publish(after(seen, late))
    stored = await frozen.history(SCOPE, str(workflow), of="executor")
    assert [each.sequence for each in stored] == [seen, last]


async def test_an_end_does_not_count_as_stored_for_another_message_with_its_id(
    harness: BusHarness,
) -> None:
    """Its id can be computed, so anybody with the executor's credentials may have used it."""
    executor, workflow = await harness.connect("executor"), uuid4()
    first = after(0, entry(workflow))
    end = after(await executor.publish(first), run_finished(SCOPE, workflow))
    elsewhere = names.subject_of(catalog.RUN_FINISHED, SCOPE, str(uuid4()))
    await harness.inject(Envelope(elsewhere, b"{}", {codec.MSG_ID: str(end.event_id)}))
    with pytest.raises(Fenced):
        await executor.publish(end)
    assert await journal_of(executor, workflow) == [first]


async def test_messages_of_unknown_types_are_foreign_and_count(harness: BusHarness) -> None:
    executor, workflow = await harness.connect("executor"), uuid4()
    seen = await executor.publish(after(0, entry(workflow)))
    newer = names.subject_of(catalog.RUN_FINISHED, SCOPE, str(workflow)).replace(".v2.", ".v99.")
    await harness.inject(Envelope(newer, b"{}", {codec.MSG_ID: "of the future"}))
    run = await read_run(executor, SCOPE, workflow, "signed")
    assert (run.last, run.fault, len(run.appends)) == (seen + 1, None, 1)
    await executor.publish(after(run.last, entry(workflow)))


async def test_an_append_is_heard_once_it_is_stored_and_a_refused_one_by_nobody(
    harness: BusHarness,
) -> None:
    executor, gateway = await harness.connect("executor"), await harness.connect("gateway")
    workflow, heard = uuid4(), asyncio.Queue[Message]()
    await gateway.listen(catalog.RUN_FINISHED, heard.put)
    async with gateway.follow(SCOPE, str(workflow)) as events, asyncio.timeout(PATIENCE_S):
        first = after(0, entry(workflow))
        seen = await executor.publish(first)
        with pytest.raises(Fenced):
            await executor.publish(after(0, run_finished(SCOPE, workflow)))
        end = after(seen, run_finished(SCOPE, workflow))
        await executor.publish(end)
        assert await heard.get() == end
        assert [await anext(events), await anext(events)] == [first, end]


async def test_a_stale_server_is_unavailable_and_not_a_fence(
    harness: BusHarness,
) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    seen = await bus.publish(after(0, entry(workflow)))
    with pytest.raises(BusUnavailable):
        await bus.publish(after(seen + 1, entry(workflow)))
    assert await bus.publish(after(seen, entry(workflow))) > seen


async def test_a_fence_concerns_its_own_journal_only(harness: BusHarness) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    await bus.publish(entry(uuid4()))
    await bus.publish(entry(workflow, scope=OTHER_SCOPE))
    await bus.publish(rejection(workflow))
    assert await bus.publish(after(0, entry(workflow))) > 0


async def test_the_history_of_nothing_is_empty(harness: BusHarness) -> None:
    bus = await harness.connect("executor")
    assert list(await bus.history(SCOPE, str(uuid4()))) == []
    assert list(await bus.history(SCOPE, str(uuid4()), of=catalog.TRACE_RECORDED)) == []


async def test_a_history_over_all_owners_is_ordered_by_time_stored(harness: BusHarness) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    told: list[Message] = []
    last = 0
    for n in range(6):
        if n % 2:
            told.append(after(last, entry(workflow, str(n))))
            last = await bus.publish(told[-1])
        else:
            told.append(rejection(workflow))
            await bus.publish(told[-1])
        await bus.publish(entry(uuid4()))
        await bus.publish(rejection(workflow, OTHER_SCOPE))
    stored = await bus.history(SCOPE, str(workflow))
    assert [record.message for record in stored] == told
    times = [record.stored_at for record in stored]
    assert times == sorted(times)
    assert times[0].utcoffset() is not None


async def test_a_history_longer_than_a_batch_is_whole(harness: BusHarness) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    told = [rejection(workflow) for _ in range(1100)]
    await asyncio.gather(*(bus.publish(each) for each in told))
    found = await bus.history(SCOPE, str(workflow), of=catalog.ANALYSIS_REJECTED)
    assert len(found) == 1100
    assert {each.message.message_id for each in found} == {each.event_id for each in told}


async def test_entities_with_odd_names_keep_apart(harness: BusHarness) -> None:
    bus = await harness.connect("gateway")
    servers = ["a.b", "a b", "a>*", "größe", "a%2Eb", "a", "\u4e2d\n"]
    for server in servers:
        await bus.publish(ToolsListed(event_id=uuid4(), scope=SCOPE, server=server, tools=()))
    for server in servers:
        [record] = await bus.history(SCOPE, server)
        assert record.message.entity == server


async def test_a_big_message_is_stored_and_comes_back_whole(harness: BusHarness) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    text = "x" * 700_000
    message = entry(workflow, text)
    reader = RecordingHandler()
    await bus.consume(catalog.Consumer("learner", catalog.TRACE_RECORDED), reader)
    async with bus.follow(SCOPE, str(workflow)) as events:
        await bus.publish(message)
        async with asyncio.timeout(PATIENCE_S):
            assert await anext(events) == message
    await reader.has_seen(1)
    assert await journal_of(bus, workflow) == [message]


async def test_a_message_whose_payload_is_lost_is_dead_lettered_and_unreadable(
    harness: BusHarness,
) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    last = await bus.publish(entry(workflow, "x" * 300_000))
    await harness.forget_payloads()
    reader = RecordingHandler()
    await bus.consume(catalog.Consumer("learner", catalog.TRACE_RECORDED, max_in_flight=1), reader)
    await bus.publish(after(last, entry(workflow)))
    await reader.has_seen(1)
    [letter] = await harness.dead_letters()
    assert "is no longer in PML_BODIES" in letter.reason
    with pytest.raises(BusError, match="is no longer in PML_BODIES"):
        await journal_of(bus, workflow)


async def test_a_follower_gets_every_event_of_its_entity_only(harness: BusHarness) -> None:
    reader, writer = await harness.connect("gateway"), await harness.connect("executor")
    for _ in range(20):
        workflow = uuid4()
        async with reader.follow(SCOPE, str(workflow)) as events:
            await writer.publish(entry(uuid4()))
            await writer.publish(entry(workflow, scope=OTHER_SCOPE))
            told: list[Message] = [entry(workflow), rejection(workflow)]
            first, _ = [await writer.publish(message) for message in told]
            told.append(after(first, entry(workflow)))
            await writer.publish(told[-1])
            async with asyncio.timeout(PATIENCE_S):
                assert [await anext(events) for _ in told] == told


async def test_an_unknown_version_is_skipped_and_an_unreadable_message_is_not(
    harness: BusHarness,
) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    version = catalog.TRACE_RECORDED.version
    subject = f"pml.evt.executor.trace-recorded.v{version}.acme.webapp.{workflow}"
    newer = subject.replace(f".v{version}.", f".v{version + 1}.")
    async with bus.follow(SCOPE, str(workflow)) as events:
        await harness.inject(Envelope(newer, b"\x00", {codec.MSG_ID: "newer"}))
        message = after(1, entry(workflow))
        await bus.publish(message)
        assert [record.message for record in await bus.history(SCOPE, str(workflow))] == [message]
        await harness.inject(appended_bytes(after(2, message), b"{"))
        with pytest.raises(BusError, match="message 3 cannot be read: not a TraceRecorded"):
            await journal_of(bus, workflow)
        last = after(3, entry(workflow))
        await bus.publish(last)
        async with asyncio.timeout(PATIENCE_S):
            assert [await anext(events) for _ in range(2)] == [message, last]


async def test_cancelling_one_wait_of_a_follower_loses_nothing(harness: BusHarness) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    message = entry(workflow)
    async with bus.follow(SCOPE, str(workflow)) as events:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(events), 0.01)  # waits: it is given up
        await bus.publish(message)
        async with asyncio.timeout(PATIENCE_S):
            assert await anext(events) == message


async def test_every_replica_gets_the_messages_it_listens_to_even_after_a_failure(
    harness: BusHarness,
) -> None:
    buses = [await harness.connect("gateway"), await harness.connect("gateway")]
    recorders = [RecordingHandler(RuntimeError("deaf")), RecordingHandler()]
    for bus, recorder in zip(buses, recorders, strict=True):

        async def hear(message: ToolsListed, recorder: RecordingHandler = recorder) -> None:
            await recorder(message)

        await bus.listen(catalog.TOOLS_LISTED, hear)
    for _ in range(2):
        await buses[0].publish(ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=()))
    for recorder in recorders:
        await recorder.has_seen(2)


async def test_a_listener_gets_only_the_entities_it_wants(harness: BusHarness) -> None:
    bus, recorder, asked = await harness.connect("gateway"), RecordingHandler(), list[str]()

    def wants(scope: Scope, server: str) -> bool:
        asked.append(server)
        if server == "odd":
            raise ValueError(server)
        return scope == SCOPE and server == "fs"

    async def hear(message: ToolsListed) -> None:
        await recorder(message)

    await bus.listen(catalog.TOOLS_LISTED, hear, wants=wants)
    listed = [
        ToolsListed(event_id=uuid4(), scope=SCOPE, server=server, tools=())
        for server in ("git", "odd", "fs")
    ]
    for message in listed:
        await bus.publish(message)
    await recorder.has_seen(2)
    assert recorder.seen == [message.message_id for message in listed[1:]]
    assert asked == ["git", "odd", "fs"]


async def test_a_slow_follower_gets_the_queued_events_then_overrun(
    harness: BusHarness,
) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    big, last = list[TraceRecorded](), 0
    async with bus.follow(SCOPE, str(workflow)) as events:
        for _ in range(17):
            big.append(after(last, entry(workflow, "x" * 300_000)))
            last = await bus.publish(big[-1])
        async with asyncio.timeout(PATIENCE_S):
            told = [await anext(events) for _ in range(15)]
            with pytest.raises(Overrun):
                await anext(events)
    assert told == big[:15]


async def test_a_follower_that_keeps_up_gets_any_number_of_events(harness: BusHarness) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    async with bus.follow(SCOPE, str(workflow)) as events, asyncio.timeout(PATIENCE_S):
        last = 0
        for _ in range(20):
            message = after(last, entry(workflow, "x" * 300_000))
            last = await bus.publish(message)
            assert await anext(events) == message
