"""Appends that no executor signed, and journals that were cut: refused, named, and nothing of them
is believed."""

import asyncio
import logging
from dataclasses import replace
from uuid import uuid4

import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import codec
from pml_common.bus.codec import Envelope
from pml_common.bus.delivery import DeadLetter, dispose
from pml_common.bus.errors import Fenced, MessageLost
from pml_common.bus.identity import SIGNATURE, Identity, all_services_identity
from pml_common.bus.run_journal import subjects_of
from pml_common.contracts.catalog import EXECUTOR_ON_RUN_WORKFLOW
from pml_common.contracts.executor import RunWorkflow, TraceRecorded
from pml_common.contracts.grant import JournalKind
from pml_common.contracts.tool import JsonObject, args_hash
from pml_common.contracts.trace import ToolEnd, ToolStart, TraceEvent
from pml_common.signing import SigningKey, TrustedKeys
from pml_common.testing.memory_broker import MemoryPayloads, Stored
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters import bus_journal
from services.executor.tests.support.builders import agreed, make_command
from services.executor.tests.support.fakes import HeldTools
from services.executor.tests.support.harness import (
    deliver,
    finish,
    journal_of,
    make_dependencies,
    parked,
)
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools

STRANGER = Identity([SigningKey.generate("executor")], TrustedKeys())
WANTED = "mail:send"


async def two_calls(api: ProgramApi, args: JsonObject) -> JsonValue:
    return [await api.call("n1", "fs:read"), await api.call("n2", "fs:write")]


async def asks(api: ProgramApi, args: JsonObject) -> JsonValue:
    return [await api.call("n1", "fs:write"), await api.call(None, WANTED)]


POOL = MemoryPool({"two": two_calls, "asks": asks})


def stored_of(bus: MemoryBus, command: RunWorkflow) -> list[Stored]:
    """Return the stored messages on the journal's subjects."""
    return bus.broker.stream("evt", "executor").on(subjects_of(command.scope, command.workflow_id))


def last_of(bus: MemoryBus, command: RunWorkflow) -> int:
    stored = stored_of(bus, command)
    return stored[-1].sequence if stored else 0


def lie(command: RunWorkflow, previous: int) -> TraceRecorded:
    """Build an append by which the run's second call was made, with a result."""
    trace = uuid4()
    entries: tuple[TraceEvent, ...] = (
        ToolStart(
            trace_id=trace, ts=1, node_id="n2", tool="fs:write", args={}, args_hash=args_hash({})
        ),
        ToolEnd(
            trace_id=trace,
            ts=2,
            node_id="n2",
            tool="fs:write",
            success=True,
            result="forged",
            duration_ms=1,
        ),
    )
    return TraceRecorded(
        event_id=uuid4(),
        scope=command.scope,
        workflow_id=command.workflow_id,
        entries=entries,
        previous=previous,
    )


async def sealed(bus: MemoryBus, append: TraceRecorded, by: Identity) -> Envelope:
    return await codec.seal(append, {}, MemoryPayloads(bus.broker), by)


async def unsigned(bus: MemoryBus, command: RunWorkflow) -> Envelope:
    return without_signature(
        await sealed(bus, lie(command, last_of(bus, command)), all_services_identity())
    )


async def by_a_stranger(bus: MemoryBus, command: RunWorkflow) -> Envelope:
    return await sealed(bus, lie(command, last_of(bus, command)), STRANGER)


async def of_another_workflow(bus: MemoryBus, command: RunWorkflow) -> Envelope:
    """Build what an executor appended to another run, behind this one's fence."""
    other = await sealed(bus, lie(make_command("two"), 0), all_services_identity())
    here = await unsigned(bus, command)
    return replace(other, subject=here.subject, headers={**here.headers, **_own(other)})


async def again(bus: MemoryBus, command: RunWorkflow) -> Envelope:
    """Build what was appended to this run, once more: without its fence, or behind another."""
    own = stored_of(bus, command)[0].envelope
    headers = {**own.headers, codec.MSG_ID: own.headers[codec.MSG_ID]}
    bus.broker.stream("evt", "executor").by_id.clear()  # five minutes later
    headers[codec.EXPECTED_LAST] = str(last_of(bus, command))
    return replace(own, headers=headers)


def _own(envelope: Envelope) -> dict[str, str]:
    return {name: envelope.headers[name] for name in (codec.MSG_ID, SIGNATURE)}


def without_signature(envelope: Envelope) -> Envelope:
    kept = {name: value for name, value in envelope.headers.items() if name != SIGNATURE}
    return replace(envelope, headers=kept)


FORGERIES = {each.__name__: each for each in (unsigned, by_a_stranger, of_another_workflow, again)}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_forged_append_in_the_midst_of_a_run_is_named_and_changes_nothing(
    forgery: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    bus, tools, command = MemoryBus(), HeldTools(), make_command("two")
    deps = make_dependencies(bus, POOL, tools)
    running = asyncio.ensure_future(deliver(command, deps))
    async with asyncio.timeout(PATIENCE_S):
        await tools.begun.wait()
        bus.broker.store(await FORGERIES[forgery](bus, command))
        forged = last_of(bus, command)
        tools.release.set()
        with pytest.raises(Fenced):
            await running
    fact = await finish(command, deps)
    assert (fact.success, fact.result) == (True, [{}, None])
    assert tools.made == {"fs:read": 1, "fs:write": 1}
    assert f"message {forged} cannot be read: not believed" in caplog.text
    assert not any("forged" in str(entry) for entry in await journal_of(bus, command))


async def test_a_journal_that_a_forger_began_is_begun_after_the_forgery() -> None:
    bus, tools, command = MemoryBus(), MemoryTools(), make_command("two")
    bus.broker.store(await unsigned(bus, command))
    deps = make_dependencies(bus, POOL, tools)
    with pytest.raises(Fenced):
        await deliver(command, deps)
    fact = await finish(command, deps)
    assert fact.success, fact.error
    first, *_ = await journal_of(bus, command)
    assert first.type == "capability_start"
    assert tools.made == {"fs:read": 1, "fs:write": 1}


async def test_an_append_that_was_taken_out_of_order_is_a_fault_of_the_journal() -> None:
    bus, command = MemoryBus(), make_command("asks")
    first = await parked(command, make_dependencies(bus, POOL, MemoryTools()))
    stream, stored = bus.broker.stream("evt", "executor"), stored_of(bus, command)
    one, two = stored[-2:]
    stream.messages[stream.messages.index(one)] = replace(one, envelope=two.envelope)
    stream.messages[stream.messages.index(two)] = replace(two, envelope=one.envelope)
    tools = MemoryTools()
    with pytest.raises(Exception, match="it was stored after"):
        await deliver(agreed(first, command), make_dependencies(bus, POOL, tools))
    assert tools.made == {}


@pytest.mark.parametrize("left", [0, 1])
async def test_a_parked_run_whose_journal_was_cut_off_calls_nothing_and_is_given_up(
    left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_journal, "LAG_DELAYS_S", (0.0, 0.0))
    bus, command = MemoryBus(), make_command("asks")
    first = await parked(command, make_dependencies(bus, POOL, MemoryTools()))
    stream = bus.broker.stream("evt", "executor")
    for each in stored_of(bus, command)[left:]:
        stream.messages.remove(each)
    tools, goes_on = MemoryTools(), agreed(first, command)
    with pytest.raises(MessageLost, match="was cut off before that") as lost:
        await deliver(goes_on, make_dependencies(bus, POOL, tools))
    assert tools.made == {}
    assert isinstance(dispose(lost.value, EXECUTOR_ON_RUN_WORKFLOW, 1), DeadLetter)


def of_release_before(bus: MemoryBus, command: RunWorkflow) -> None:
    """Take the signatures from the appends, as executors wrote them before these were signed."""
    messages = bus.broker.stream("evt", "executor").messages
    for number, each in enumerate(messages):
        if "trace-recorded" in each.envelope.subject and each in stored_of(bus, command):
            messages[number] = replace(each, envelope=without_signature(each.envelope))


def of_kind(command: RunWorkflow, kind: JournalKind) -> RunWorkflow:
    return command.model_copy(update={"grant": command.grant.model_copy(update={"journal": kind})})


async def interrupted(bus: MemoryBus, command: RunWorkflow) -> None:
    """Run until the second call is under way, and stop the executor there."""
    tools = HeldTools()
    dying = asyncio.ensure_future(deliver(command, make_dependencies(bus, POOL, tools)))
    async with asyncio.timeout(PATIENCE_S):
        await tools.begun.wait()
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)


@pytest.mark.parametrize(
    ("kind", "made"),
    [("unsigned", {"fs:write": 1}), ("signed", {"fs:read": 1, "fs:write": 1})],
)
async def test_unsigned_appends_count_only_where_the_grant_says_so(
    kind: JournalKind, made: dict[str, int]
) -> None:
    bus, command = MemoryBus(), of_kind(make_command("two"), kind)
    await interrupted(bus, command)
    of_release_before(bus, command)
    tools = MemoryTools()
    fact = await finish(command, make_dependencies(bus, POOL, tools))
    assert fact.success, fact.error
    assert tools.made == made
    assert [call.tool for call in fact.task_results] == ["fs:read", "fs:write"]


async def test_after_the_first_signed_append_no_unsigned_one_counts() -> None:
    bus, command = MemoryBus(), of_kind(make_command("two"), "unsigned")
    await interrupted(bus, command)
    of_release_before(bus, command)
    await interrupted(bus, command)  # an executor of this release takes over
    bus.broker.store(await unsigned(bus, command))
    tools = MemoryTools()
    fact = await finish(command, make_dependencies(bus, POOL, tools))
    assert fact.success, fact.error
    assert "forged" not in str(fact)


@pytest.mark.parametrize("is_forged", [False, True])
async def test_a_run_that_was_parked_before_appends_were_signed_goes_on_after_its_approval(
    is_forged: bool,
) -> None:
    bus, command = MemoryBus(), of_kind(make_command("asks"), "unsigned")
    tools = MemoryTools()
    deps = make_dependencies(bus, POOL, tools)
    first = await parked(command, deps)
    of_release_before(bus, command)
    if is_forged:
        bus.broker.store(await unsigned(bus, command))
    goes_on = of_kind(agreed(first, command), "unsigned_until_park")
    fact = await finish(goes_on, deps)
    assert fact.success, fact.error
    assert tools.made == {"fs:write": 1, WANTED: 1}
    assert "forged" not in str(fact)
