"""Invalid messages on a workflow's subjects: it always ends, but not by a forged message."""

import hashlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from libs.pml_common.tests.support.builders import appended_bytes
from libs.pml_local.tests.support.harness import eventually
from pml_common.bus import codec, names
from pml_common.bus.codec import Envelope
from pml_common.bus.identity import SIGNATURE, all_services_identity, signed_content
from pml_common.contracts import catalog, ids
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import CONSUMERS, MessageType
from pml_common.contracts.executor import TraceRecorded
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.entrypoints.timers.on_due import on_due
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.harness import World, Worlds

pytestmark = pytest.mark.integration

SUBJECTS: tuple[MessageType[Message], ...] = tuple(
    dict.fromkeys(
        each.message for each in CONSUMERS if each.message.model.entity_field == "workflow_id"
    )
)
"""All messages of a workflow that have a consumer."""


@dataclass(frozen=True)
class Poison:
    """Unreadable bytes; `signer` makes a signature that is invalid for them, or, as
    their sender, one that does."""

    data: bytes
    signer: str | None = None
    payload: str | None = None

    def on(self, entry: MessageType[Message], workflow_id: UUID, message_id: str) -> Envelope:
        subject = names.subject_of(entry, SCOPE, str(workflow_id))
        headers = {codec.MSG_ID: message_id}
        digest = self.payload or hashlib.sha256(self.data).hexdigest()
        if self.payload is not None:
            headers[codec.PAYLOAD] = self.payload
        if self.signer is not None:
            signer: Any = entry.sender if self.signer == "sender" else self.signer
            headers[SIGNATURE] = all_services_identity().sign(
                signer, signed_content(subject, message_id, digest)
            )
        return Envelope(subject, self.data, headers)


FORGED = {
    "no JSON": Poison(b"not json"),
    "no message": Poison(b"{}"),
    "a body that is gone": Poison(b"", payload="0" * 64),
    "signed by the learner": Poison(b"{}", signer="learner"),
    "signed by the learner, its body gone": Poison(b"", signer="learner", payload="0" * 64),
}
SIGNED = {
    "no JSON, signed": Poison(b"not json", signer="sender"),
    "no message, signed": Poison(b"{}", signer="sender"),
    "a body that is gone, signed": Poison(b"", signer="sender", payload="0" * 64),
}
EVERY = FORGED | SIGNED
_FAR = datetime.max.replace(tzinfo=UTC)
PHASES = {"nobody analyses it": False, "its run goes on": True}


@pytest.fixture
async def quiet(world: Worlds) -> AsyncGenerator[World]:
    """Run a gateway that answers at once that a workflow runs."""
    async with world(gateway_answer_margin_s=0.0) as here:
        yield here


async def begun(here: World, code: str = "hang") -> Workflow:
    """Start a workflow; with an executor, it runs."""
    told = await here.execute(code, timeout=0.1)  # waits: until it runs
    found = await here.parts.stores.workflows.get(SCOPE, UUID(told["workflow_id"]))
    assert found is not None
    assert found.finished_at is None
    return found


async def state_of(here: World, of: Workflow) -> Workflow:
    found = await here.parts.stores.workflows.get(SCOPE, of.workflow_id)
    assert found is not None
    return found


def publish(here: World, of: Workflow, poison: Poison) -> None:
    """Publish on every subject: under a new id, and under the awaited ids."""
    awaited = {str(ids.effect_id(of.workflow_id, entry.name)) for entry in SUBJECTS}
    awaited |= {str(ids.effect_id(of.requested.event_id, entry.name)) for entry in SUBJECTS}
    for entry in SUBJECTS:
        for message_id in (uuid4().hex, str(of.run_command_id), *awaited):
            here.broker.store(poison.on(entry, of.workflow_id, message_id))


def journal_poison(of: Workflow, data: bytes) -> Envelope:
    return Poison(data).on(catalog.TRACE_RECORDED, of.workflow_id, uuid4().hex)


@pytest.mark.parametrize("kind", FORGED)
async def test_a_forgery_that_was_buried_ends_no_healthy_workflow(quiet: World, kind: str) -> None:
    started = await begun(quiet)
    here = await state_of(quiet, started)
    for entry in SUBJECTS:
        quiet.broker.store(FORGED[kind].on(entry, here.workflow_id, uuid4().hex))
    assert len(await eventually(lambda: _letters(quiet, 6))) >= 6
    assert (await state_of(quiet, started)).state == "running"
    quiet.peers.release.set()
    ended = await eventually(lambda: _end(quiet, started))
    assert ended.state == "succeeded"


async def _letters(here: World, at_least: int) -> list[str]:
    found = [letter.reason for letter in here.broker.dead]
    return found if len(found) >= at_least else []


async def _end(here: World, of: Workflow) -> Workflow | None:
    now = await state_of(here, of)
    return now if now.finished_at is not None else None


@pytest.mark.parametrize("data", [b"not json", b"{}"])
async def test_a_run_whose_journal_cannot_be_read_ends_and_says_what_is_unknown(
    quiet: World, data: bytes
) -> None:
    started = await begun(quiet)
    first = TraceRecorded(
        event_id=uuid4(), scope=SCOPE, workflow_id=started.workflow_id, entries=(), previous=0
    )
    quiet.broker.store(appended_bytes(first, data))
    quiet.peers.reads_journals = True
    quiet.peers.release.set()
    ended = await eventually(lambda: _end(quiet, started))
    assert ended.error is not None
    assert ended.error.kind == "internal"
    assert "journal cannot be read as a whole (append 1: not a TraceRecorded" in ended.error.message
    assert "What else was called is unknown" in ended.error.message


@pytest.mark.parametrize("is_there", PHASES.values(), ids=list(PHASES))
@pytest.mark.parametrize("kind", EVERY)
async def test_no_workflow_outlives_its_time_and_the_slack_whatever_is_published(
    kind: str, is_there: bool, world: Worlds
) -> None:
    async with world(is_there, gateway_answer_margin_s=0.0) as here:
        started = await begun(here)
        publish(here, started, EVERY[kind])
        here.broker.store(journal_poison(started, EVERY[kind].data))
        rules = here.parts.workflows.rules
        margin = rules.grant_slack + rules.patience
        latest = started.requested.requested_at.timestamp() + started.timeout_s
        assert await _ended_by(here, started) <= latest + margin.total_seconds()


async def _ended_by(here: World, of: Workflow) -> float:
    """Return when it has ended if the clock is advanced to each due time."""
    at, now = of.requested.requested_at, of
    assert await eventually(lambda: here.parts.stores.workflows.due(SCOPE, _FAR, 10))  # has its row
    for _ in range(20):
        now = await state_of(here, of)
        if now.finished_at is not None:
            return now.finished_at.timestamp()
        assert now.due_at is not None
        at = max(at, now.due_at)
        await _sweep(here, at)
    raise AssertionError(f"still {now.state} at {at}")


async def _sweep(here: World, at: datetime) -> None:
    parts = here.parts
    await on_due(SCOPE, parts.workflows, parts.stores.workflows, parts.tools, lambda: at)
