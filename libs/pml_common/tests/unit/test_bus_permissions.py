"""Permissions on the server, derived from the catalog."""

import pytest

from pml_common.bus import names, streams
from pml_common.bus.permissions import permissions_of
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import SERVICES, Consumer, MessageType, Service


@pytest.mark.parametrize("entry", catalog.MESSAGES, ids=lambda entry: entry.name)
def test_one_service_alone_publishes_a_message(entry: MessageType[Message]) -> None:
    subject = names.filter_of(entry)
    publishers = [each for each in SERVICES if subject in permissions_of(each).publish]
    assert publishers == [entry.sender]
    assert (entry.sender == entry.owner) == (entry.kind != "cmd")


@pytest.mark.parametrize("consumer", catalog.CONSUMERS, ids=lambda consumer: consumer.durable)
def test_one_service_alone_takes_from_a_durable_consumer(consumer: Consumer[Message]) -> None:
    place = f"{streams.stream_of(consumer)}.{consumer.durable}"
    for subject in (f"$JS.API.CONSUMER.MSG.NEXT.{place}", f"$JS.ACK.{place}.>"):
        assert [each for each in SERVICES if subject in permissions_of(each).publish] == [
            consumer.service
        ]


def test_replies_are_read_by_their_service_alone() -> None:
    inboxes = [
        subject
        for service in SERVICES
        for subject in permissions_of(service).subscribe
        if subject.startswith("_INBOX")
    ]
    assert inboxes == [f"_INBOX.{service}.>" for service in SERVICES]


def test_only_the_executor_requests_tool_calls() -> None:
    asked = names.query_subject(catalog.CALL_TOOL)
    assert [each for each in SERVICES if asked in permissions_of(each).publish] == ["executor"]


@pytest.mark.parametrize("service", SERVICES)
def test_nobody_deletes_purges_or_reads_without_need(service: Service) -> None:
    allowed = permissions_of(service)
    api = {s.removeprefix("$JS.API.") for s in allowed.publish if s.startswith("$JS.API")}
    verbs = ("INFO", "STREAM.INFO.", "CONSUMER.INFO.", "CONSUMER.MSG.NEXT.")
    assert not [s for s in api if not s.startswith((*verbs, "DIRECT.GET.", "STREAM.MSG.GET."))]
    wild = [s for s in api if any(token in ("*", ">") for token in s.split("."))]
    assert wild == (["DIRECT.GET.KV_PML_MEMOS.>"] if service == "gateway" else [])
    assert not [s for s in allowed.publish if s in (">", "$JS.>")]
    assert ">" not in allowed.subscribe
    assert ("pml.stored.evt.>" in allowed.subscribe) == (service == "gateway")
    journal = "$JS.API.DIRECT.GET.PML_EXECUTOR_EVT"
    assert (journal in allowed.publish) == (service in ("gateway", "executor"))


def test_the_gateway_alone_reads_dead_letters() -> None:
    letters = [
        subject
        for service in SERVICES
        for subject in permissions_of(service).publish
        if "PML_DEAD.gateway-on-dead-letter" in subject and service != "gateway"
    ]
    assert letters == []
    allowed = permissions_of("gateway").publish
    assert "$JS.API.CONSUMER.MSG.NEXT.PML_DEAD.gateway-on-dead-letter" in allowed
    assert "$JS.API.DIRECT.GET.PML_EXECUTOR_CMD" in allowed
    assert not [subject for subject in allowed if subject.startswith("pml.dead.gateway-on-dead")]
