"""Each service's password against every request of the server's API, and every subject of the
catalog that is not its own: refused. Generated; the exceptions are written here, not taken from the
code that makes the permissions."""

from collections.abc import Iterator

import pytest

from libs.pml_local.tests.support.nats_accounts import NatsAccount
from pml_common.bus import names, streams
from pml_common.contracts import catalog
from pml_common.contracts.catalog import SERVICES, Service
from tests.walls.bus.intruder import connected_as

pytestmark = pytest.mark.integration

API = "$JS.API"
CHANGES_OF_STREAMS = (
    *("CREATE", "UPDATE", "DELETE", "PURGE", "SNAPSHOT", "RESTORE", "MSG.DELETE"),
    *("PEER.REMOVE", "PEER.EVACUATE", "LEADER.STEPDOWN", "CANCEL_MOVE"),
)
CHANGES_OF_CONSUMERS = (
    *("CREATE", "DURABLE.CREATE", "DELETE", "PAUSE", "RESET", "UNPIN", "LEADER.STEPDOWN"),
)
OF_ALL = (
    *("STREAM.NAMES", "STREAM.LIST", "STREAM.TEMPLATE.NAMES", "META.LEADER.STEPDOWN"),
    *("META.RESCUE", "SERVER.REMOVE", "SERVER.EVACUATE", "ACCOUNT.PURGE.x"),
    *("ACCOUNT.STREAM.MOVE.x.y", "ACCOUNT.STREAM.CANCEL_MOVE.x.y"),
)
STREAMS = [*streams.stream_names(), "OTHER"]
BODIES = ("PML_BODIES", "OBJ_PML_PAYLOADS")
TAIL = "acme.webapp.e"


def changes() -> Iterator[str]:
    """Yield every request that changes something, which no service may send."""
    for stream in STREAMS:
        for verb in CHANGES_OF_STREAMS:
            yield f"{API}.STREAM.{verb}.{stream}"
        yield f"{API}.CONSUMER.CREATE.{stream}"
        yield f"{API}.CONSUMER.CREATE.{stream}.spy.pml.>"
        yield f"{API}.CONSUMER.NAMES.{stream}"
        yield f"{API}.CONSUMER.LIST.{stream}"
        yield f"$JS.SNAPSHOT.RESTORE.{stream}.x"
        yield f"$JS.FC.{stream}.x.1"
    for consumer in streams.ALL_CONSUMERS:
        for verb in CHANGES_OF_CONSUMERS:
            yield f"{API}.CONSUMER.{verb}.{streams.stream_of(consumer)}.{consumer.durable}"
    yield from (f"{API}.{each}" for each in OF_ALL)


def reads_of_others(service: Service) -> Iterator[str]:
    """Yield reads of streams and consumers that are others' business."""
    readable = {
        f"PML_{owner.upper()}_EVT" for who, owner in catalog.STREAM_READERS if who == service
    }
    consumed = {streams.stream_of(each) for each in catalog.CONSUMERS if each.service == service}
    queues = {names.stream_of(each.kind, each.owner) for each in catalog.MESSAGES}
    for stream in streams.stream_names():
        by_direct_get = {*readable, *BODIES}
        by_request = {*readable, *BODIES, *consumed}
        if service == "gateway":  # it reads what the server gave up, and its own cache
            by_direct_get |= {each for each in queues if not each.endswith("_EVT")}
            by_request.add("PML_GATEWAY_RUN")
        if stream not in by_direct_get:
            yield f"{API}.DIRECT.GET.{stream}"
        if stream not in by_request:
            yield f"{API}.STREAM.MSG.GET.{stream}"
        if (service, stream) != ("gateway", "KV_PML_MEMOS"):
            yield f"{API}.DIRECT.GET.{stream}.pml.evt.x"
    for consumer in streams.ALL_CONSUMERS:
        if consumer.service != service:
            place = f"{streams.stream_of(consumer)}.{consumer.durable}"
            yield f"{API}.CONSUMER.MSG.NEXT.{place}"
            yield f"$JS.ACK.{place}.1.1.1.1.0"


def subjects_of_others(service: Service) -> Iterator[str]:
    """Yield the subjects that another service publishes to, as the catalog says."""
    for entry in catalog.MESSAGES:
        if entry.sender != service:
            yield f"{names.prefix_of(entry)}.{TAIL}"
        if entry.kind == "evt":
            yield f"{names.STORED}{names.prefix_of(entry).removeprefix('pml.')}.{TAIL}"
    for query in catalog.QUERIES:
        if service not in query.clients:
            yield names.query_subject(query)
    for consumer in catalog.CONSUMERS:
        if consumer.service != service:
            yield names.dead_subject(consumer.durable)


def places_of_others(service: Service) -> Iterator[str]:
    """Yield inboxes, buckets and other subjects that are not the service's own."""
    for other in SERVICES:
        if other != service:
            yield names.body_subject(other, "0" * 64, "1", "0")
            yield names.write_check("evt", other)
            yield f"_INBOX.{other}.x.1"
    if service != "gateway":
        yield "$KV.PML_MEMOS.result.acme"
        yield f"{API}.STREAM.INFO.KV_PML_MEMOS"
    yield from (
        "$KV.OTHER.x",
        "$O.PML_PAYLOADS.C.x",
        "$O.PML_PAYLOADS.M.x",
        "pml.body.x",
        "$SRV.PING",
    )
    yield from ("$SYS.REQ.SERVER.PING", "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.S.c", "other")


def heard_by_others(service: Service) -> Iterator[str]:
    """Yield what others alone may subscribe to."""
    heard = {entry.name for who, entry in catalog.LISTENERS if who == service}
    for entry in catalog.MESSAGES:
        yield names.filter_of(entry) if entry.kind == "evt" else f"pml.{entry.kind}.{entry.owner}.>"
        if entry.name not in heard and service != "gateway":
            yield names.heard_filter(entry)
    for query in catalog.QUERIES:
        if query.owner != service:
            yield names.query_subject(query)
    yield from (f"_INBOX.{other}.>" for other in SERVICES if other != service)
    yield from (">", "pml.>", "_INBOX.>", "$JS.>", "$KV.>", "pml.body.>", "pml.dead.>", "pml.qry.>")


def cases(service: Service) -> list[str]:
    """Return all subjects that a service must not publish to."""
    own = (reads_of_others(service), subjects_of_others(service), places_of_others(service))
    return [*dict.fromkeys(subject for part in (changes(), *own) for subject in part)]


def test_there_are_enough_cases() -> None:
    assert sum(len(cases(service)) for service in SERVICES) > 2000


@pytest.mark.parametrize("service", SERVICES)
async def test_the_server_refuses_what_is_not_the_services_own(
    bare_account: NatsAccount, service: Service
) -> None:
    async with connected_as(bare_account, service) as intruder:
        assert await intruder.allowed(cases(service)) == []
        assert await intruder.allowed(heard_by_others(service), "subscription") == []
