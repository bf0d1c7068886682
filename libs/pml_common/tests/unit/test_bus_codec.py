"""The wire format, and the disposition of deliveries."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.pml_common.tests.support.builders import after, run_finished
from pml_common.bus import codec
from pml_common.bus.delivery import DeadLetter, Leave, Retry, dispose
from pml_common.bus.errors import (
    BusUnavailable,
    Fenced,
    NotBelieved,
    Rejected,
    Retryable,
    ServedElsewhere,
    TooLarge,
)
from pml_common.bus.identity import SIGNATURE, all_services_identity
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer, MessageType
from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import Edge
from pml_common.contracts.tool import ToolDefinition
from pml_common.contracts.trace import LogWritten

SCOPE = Scope(org="acme", project="webapp")
CONSUMER = Consumer(
    "learner", catalog.RUN_FINISHED, max_deliver=6, max_failures=4, retry_delays_s=(0.2, 1.0)
)


class Shelf:
    """A payload store that counts its writes."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def put(self, key: str, data: bytes) -> None:
        self.kept[key] = data

    async def get(self, key: str) -> bytes | None:
        return self.kept.get(key)


def tools_listed(description: str = "") -> ToolsListed:
    tool = ToolDefinition(server="fs", name="read", description=description)
    return ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=(tool,))


@given(description=st.text(), event_id=st.uuids())
def test_a_contract_comes_back_as_it_was_sent(description: str, event_id: UUID) -> None:
    message = tools_listed(description).model_copy(update={"event_id": event_id})
    assert codec.decode(ToolsListed, codec.encode(message)) == message


def test_a_contract_is_encoded_under_its_published_names() -> None:
    edge = Edge.model_validate({"from": "n1", "to": "n2", "type": "sequence"})
    assert b'"from":"n1"' in codec.encode(edge)
    assert codec.decode(Edge, codec.encode(edge)) == edge


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"server": 7}', b"\xff"])
def test_an_invalid_body_is_rejected(data: bytes) -> None:
    with pytest.raises(Rejected, match="not a ToolsListed"):
        codec.decode(ToolsListed, data)


async def test_a_small_body_is_sent_inline() -> None:
    shelf = Shelf()
    sealed = await codec.seal(message := tools_listed(), {"a": "b"}, shelf, all_services_identity())
    assert sealed.subject == "pml.evt.gateway.tools-listed.v1.acme.webapp.fs"
    told = {"a": "b", "Nats-Msg-Id": str(message.event_id)}
    assert {**sealed.headers, SIGNATURE: ""} == {**told, SIGNATURE: ""}
    assert await codec.check_out(sealed.data, sealed.headers, shelf) == codec.encode(message)
    assert shelf.kept == {}


async def test_an_end_behind_another_fence_than_its_own_is_not_believed() -> None:
    """A signature covers no headers, so that of one that is published again holds, too."""
    end = after(3, run_finished(SCOPE, uuid4()))
    sealed = await codec.seal(end, {}, Shelf(), all_services_identity())
    codec.require_own_fence(catalog.RUN_FINISHED, end, sealed)
    again = replace(sealed, headers={**sealed.headers, codec.EXPECTED_LAST: "4"})
    codec.require_authentic(catalog.RUN_FINISHED, again, all_services_identity())
    with pytest.raises(NotBelieved, match="behind another fence"):
        codec.require_own_fence(catalog.RUN_FINISHED, end, again)


async def test_a_large_body_is_stored_once_however_often_it_is_sent() -> None:
    shelf = Shelf()
    line = LogWritten(trace_id=uuid4(), ts=0, level="info", message="x" * codec.INLINE_LIMIT)
    message = TraceRecorded(
        event_id=uuid4(), scope=SCOPE, workflow_id=uuid4(), entries=(line,), previous=3
    )
    first = await codec.seal(message, {}, shelf, all_services_identity())
    second = await codec.seal(message, {}, shelf, all_services_identity())
    journal = f"pml.evt.executor.*.*.acme.webapp.{message.workflow_id}"
    for sealed in (first, second):
        assert sealed.data == b""
        assert sealed.headers["Nats-Expected-Last-Subject-Sequence"] == "3"
        assert sealed.headers["Nats-Expected-Last-Subject-Sequence-Subject"] == journal
        assert await codec.check_out(sealed.data, sealed.headers, shelf) == codec.encode(message)
    assert len(shelf.kept) == 1
    shelf.kept.clear()
    with pytest.raises(Rejected, match="is no longer in PML_BODIES"):
        await codec.check_out(second.data, second.headers, shelf)


@pytest.mark.parametrize("entry", catalog.MESSAGES, ids=lambda entry: entry.name)
def test_a_subject_identifies_its_message_type(entry: MessageType[Message]) -> None:
    prefix = f"pml.{entry.kind}.{entry.owner}.{entry.name}"
    assert codec.type_of_subject(f"{prefix}.v{entry.version}.acme.webapp.x") is entry
    assert codec.type_of_subject(f"{prefix}.v{entry.version + 1}.acme.webapp.x") is None


@pytest.mark.parametrize(
    ("error", "deliveries", "expected"),
    [
        (Retryable("not yet"), 1, Retry(0.2)),
        (RuntimeError("bug"), 2, Retry(1.0)),
        (BusUnavailable("gone"), 3, Retry(1.0)),
        (RuntimeError("bug"), 4, DeadLetter("RuntimeError: bug (delivery 4 of 4)")),
        (BusUnavailable("gone"), 5, Retry(1.0)),
        (BusUnavailable("gone"), 6, DeadLetter("BusUnavailable: gone (delivery 6 of 6)")),
        (ServedElsewhere("b"), 1, Retry(0.05)),
        (ServedElsewhere("b"), 3, Retry(0.2)),
        (ServedElsewhere("b"), 5, Retry(0.8)),
        (ServedElsewhere("b"), 6, DeadLetter("ServedElsewhere: b (delivery 6 of 6)")),
        (Rejected("never"), 1, DeadLetter("never")),
        (Fenced("s", 1), 1, Leave()),
        (Fenced("s", 1), 4, Leave()),
    ],
)
def test_the_disposition_of_a_delivery_follows_from_its_error(
    error: Exception, deliveries: int, expected: object
) -> None:
    assert dispose(error, CONSUMER, deliveries) == expected


async def test_a_body_over_the_limit_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "BODY_LIMIT", 1_000)
    with pytest.raises(TooLarge, match="a body of 1,001 bytes is refused: at most 1,000 are sent"):
        await codec.check_in(b"x" * 1_001, {}, Shelf(), inline_limit=10)


def test_a_message_may_wait_for_a_replica_of_its_scope_while_it_is_stored() -> None:
    parked = catalog.GATEWAY_ON_WORKFLOW_PARKED
    assert dispose(ServedElsewhere("b"), parked, catalog.WHILE_STORED - 1) == Retry(15.0)
