"""Journals into which somebody else wrote, or that lost an entry: their runs end, and repeat no
call."""

import os
import signal
from collections.abc import AsyncGenerator
from typing import cast
from uuid import uuid4

import pytest
from nats.js import JetStreamContext

from libs.pml_local.tests.support.harness import eventually
from pml_common.bus import codec, connection, names
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import CONSUMERS, MessageType
from pml_common.contracts.scope import Scope
from tests.e2e.harness import Json, StackHarness

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

SCOPE = Scope(org="local", project="default")
JOURNALS = "PML_EXECUTOR_EVT"
POISON: dict[str, tuple[bytes, dict[str, str]]] = {
    "no JSON": (b"not json", {}),
    "no append": (b"{}", {}),
    "a body that is gone": (b"", {codec.PAYLOAD: "0" * 64}),
}
PROGRAM = """
const looked = await mcp.counting.peek({ path: "/" });
const done = await mcp.counting.step({ n: args.n });
return [looked, done, await mcp.counting.peek({ path: "/tmp" })];
"""
STEPS = """
await mcp.counting.step({ n: args.n + 1 });
await mcp.counting.step({ n: args.n + 2 });
return await mcp.counting.step({ n: args.n });
"""
"""Its journal has an append before each step."""


@pytest.fixture
async def operator(harness: StackHarness) -> AsyncGenerator[JetStreamContext]:
    """The operator's JetStream, which may do everything."""

    async def ignore() -> None: ...

    client = await connection.connect(
        harness.stack.nats_url, "operator", ignore, 10.0, inbox="_INBOX.operator"
    )
    yield JetStreamContext(client)
    await client.close()


def subject(entry: MessageType[Message], workflow: str) -> str:
    return names.subject_of(entry, SCOPE, workflow)


async def poison(operator: JetStreamContext, workflow: str, kind: str) -> None:
    data, headers = POISON[kind]
    journal = subject(catalog.TRACE_RECORDED, workflow)
    await operator.publish(journal, data, headers={**headers, codec.MSG_ID: uuid4().hex})


async def holding(harness: StackHarness, n: int, program: str = PROGRAM) -> str:
    """A workflow whose run waits inside `step(n)`."""
    harness.hold(n)
    asked = await harness.http.post(
        "/api/execute", json={"code": program, "args": {"n": n}, "timeout": 60}
    )
    workflow = str(asked.json()["workflow_id"])
    await harness.approve(workflow)
    await eventually(lambda: harness.steps()[n] == 1)
    return workflow


def error_of(ended: Json) -> tuple[str, str]:
    assert ended["status"] == "error", ended
    error = cast(Json, ended["error"])
    return str(error["kind"]), str(error["message"])


@pytest.mark.parametrize(("kind", "n"), [(kind, 900 + n) for n, kind in enumerate(POISON)])
async def test_bytes_that_no_executor_signed_are_no_part_of_a_journal(
    harness: StackHarness, operator: JetStreamContext, kind: str, n: int
) -> None:
    workflow = await holding(harness, n)
    await poison(operator, workflow, kind)
    harness.release(n)
    assert (await harness.end_of(workflow))["status"] == "success"
    assert harness.steps()[n] == 1


async def test_a_run_with_foreign_bytes_in_its_journal_is_cancelled(
    harness: StackHarness, operator: JetStreamContext
) -> None:
    workflow = await holding(harness, 910)
    await poison(operator, workflow, "no JSON")
    path = f"/api/workflows/{workflow}/cancel"
    answer = await harness.http.post(path, json={"reason": "enough", "wait": True})
    assert answer.status_code == 200, answer.text
    kind, message = error_of(await harness.end_of(workflow))
    assert kind == "cancelled"
    assert message.startswith("local cancelled it: enough. It has called counting:peek.")
    assert harness.steps()[910] == 1


async def test_a_run_that_lost_a_record_is_not_run_again(
    harness: StackHarness, operator: JetStreamContext
) -> None:
    """A stored append vanishes, as by a flipped bit, and its executor dies."""
    workflow = await holding(harness, 920, STEPS)
    journal = subject(catalog.TRACE_RECORDED, workflow)
    last = await operator.get_last_msg(JOURNALS, journal)
    first = await operator.get_msg(JOURNALS, seq=1, subject=journal, next=True)
    assert first.seq is not None
    lost = await operator.get_msg(JOURNALS, seq=first.seq + 1, subject=journal, next=True)
    assert lost.seq is not None
    assert last.seq is not None
    assert first.seq < lost.seq < last.seq
    await operator.delete_msg(JOURNALS, lost.seq)
    os.kill(harness.stack.pid_of("executor"), signal.SIGKILL)
    kind, message = error_of(await harness.end_of(workflow))
    assert kind == "internal"
    assert f"it was stored after append {lost.seq}" in message
    assert "What else was called is unknown" in message
    assert [harness.steps()[n] for n in (921, 922, 920)] == [1, 1, 1]
    harness.release(920)


async def test_dead_lettered_forgeries_end_no_run(
    harness: StackHarness, operator: JetStreamContext
) -> None:
    workflow = await holding(harness, 930)
    before, published = (await operator.stream_info("PML_DEAD")).state.messages, 0
    for consumer in CONSUMERS:
        if consumer.message.model.entity_field != "workflow_id":
            continue
        for data, headers in POISON.values():
            forged = {**headers, codec.MSG_ID: uuid4().hex}
            await operator.publish(subject(consumer.message, workflow), data, headers=forged)
            published += 1
    await operator.publish("pml.dead.executor-on-run-workflow", b"a forged letter")

    async def read() -> bool:
        letters = (await operator.stream_info("PML_DEAD")).state.messages
        reader = await operator.consumer_info("PML_DEAD", "gateway-on-dead-letter")
        waiting = (reader.num_pending or 0) + (reader.num_ack_pending or 0)
        return letters > before + published and waiting == 0

    await eventually(read)
    assert (await harness.workflow(workflow))["status"] == "running"
    harness.release(930)
    assert (await harness.end_of(workflow))["status"] == "success"
    assert harness.steps()[930] == 1
