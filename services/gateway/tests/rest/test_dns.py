"""The routes /api/dns/…: what they ask of the registry, for whom, and how they fail."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from pml_common.bus.errors import QueryErrorCode, QueryFailed
from pml_common.contracts import catalog
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.dns import (
    Change,
    DnsQuery,
    Fork,
    LabelRecord,
    LookupRecord,
    QueryRecords,
    ReadHistory,
    Rename,
    SetVisibility,
    TagVersion,
    Transfer,
    Unyank,
    WhoisRecord,
    Yank,
)
from pml_common.contracts.merging import MergeCapabilities, PlanMerge
from pml_common.testing.memory_bus import MemoryBus
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.dns import FakeDns, example
from services.gateway.tests.support.harness import APPROVER, Json, World, Worlds

pytestmark = pytest.mark.integration

NAME = "fs:read@2"
CALLER: Json = {"scope": SCOPE, "principal": "mira"}


@asynccontextmanager
async def with_dns(world: Worlds) -> AsyncGenerator[tuple[World, FakeDns]]:
    """Run a gateway and a registry."""
    async with world() as w:
        dns = FakeDns(MemoryBus(w.broker))
        await dns.start()
        yield w, dns


@pytest.mark.parametrize(
    ("path", "params", "query", "query_type"),
    [
        (
            "lookup",
            {"name": NAME},
            LookupRecord(**CALLER, reference=NAME),
            catalog.LOOKUP_RECORD,
        ),
        ("whois", {"name": NAME}, WhoisRecord(**CALLER, reference=NAME), catalog.WHOIS_RECORD),
        ("records", {}, QueryRecords(**CALLER), catalog.QUERY_RECORDS),
        (
            "records",
            {"created_by": "e@*", "tags": ["json", "io"], "reach": "public", "sort": "name"},
            QueryRecords(
                **CALLER, created_by="e@*", tags=("json", "io"), reach="public", sort="name"
            ),
            catalog.QUERY_RECORDS,
        ),
        (
            "history",
            {"name": "fs:read", "limit": 3, "cursor": "abc"},
            ReadHistory(**CALLER, reference="fs:read", limit=3, cursor="abc"),
            catalog.READ_HISTORY,
        ),
    ],
)
async def test_a_read_asks_the_registry_for_the_caller_and_returns_its_answer(
    path: str,
    params: Json,
    query: DnsQuery,
    query_type: QueryType[DnsQuery, DnsQuery],
    world: Worlds,
) -> None:
    async with with_dns(world) as (w, dns):
        answer = await w.http.get(f"/api/dns/{path}", params=params)
        assert answer.status_code == 200, answer.text
        assert answer.json() == example(query_type).model_dump(mode="json")
        assert dns.asked == [query]


CHANGES: list[tuple[str, Json, Change]] = [
    ("rename", {"name": NAME, "new_name": "fs:load"}, Rename(name="fs:load")),
    ("tag", {"name": NAME, "version_tag": "v1.2.0"}, TagVersion(version_tag="v1.2.0")),
    (
        "tag",
        {"name": NAME, "add": ["io"], "remove": ["old"]},
        LabelRecord(add=("io",), remove=("old",)),
    ),
    ("yank", {"name": NAME, "reason": "wrong"}, Yank(reason="wrong")),
    ("unyank", {"name": NAME}, Unyank()),
    ("visibility", {"name": NAME, "visibility": "org"}, SetVisibility(visibility="org")),
    ("transfer", {"name": NAME, "owner": "ada"}, Transfer(owner="ada")),
    ("fork", {"source": NAME, "name": "fs:own"}, Fork(name="fs:own")),
]


@pytest.mark.parametrize(("path", "body", "change"), CHANGES)
async def test_a_change_is_asked_for_the_caller_and_returns_the_record(
    path: str, body: Json, change: Change, world: Worlds
) -> None:
    async with with_dns(world) as (w, dns):
        answer = await w.http.post(f"/api/dns/{path}", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json() == example(catalog.CHANGE_RECORD).model_dump(mode="json")
        (asked,) = dns.changes
        assert (asked.scope, asked.principal, asked.is_admin) == (SCOPE, "mira", False)
        assert (asked.reference, asked.change) == (NAME, change)


async def test_a_merge_is_planned_and_registered_for_the_caller_once_under_a_key(
    world: Worlds,
) -> None:
    async with with_dns(world) as (w, dns):
        body: Json = {"name": "fs:checked", "sources": ["fs:read@v1", "json:check"]}
        headers = {"Idempotency-Key": "k1"}
        for _ in "12":
            answer = await w.http.post("/api/dns/merge", json=body, headers=headers)
            assert answer.status_code == 200, answer.text
            assert answer.json()["merged_from"] == [
                "acme.webapp.fs.ensure_file.9f52@2",
                "acme.webapp.json.check.03ce@1",
            ]
        planned, merged, again, _ = dns.asked
        assert planned == again
        assert isinstance(planned, PlanMerge)
        assert (planned.sources, planned.name) == (("fs:read@v1", "json:check"), "fs:checked")
        assert isinstance(merged, MergeCapabilities)
        assert merged.request_id == planned.request_id
        assert (merged.scope, merged.principal, merged.is_admin) == (SCOPE, "mira", False)


async def test_the_approver_is_an_admin_by_their_key_and_nobody_else(world: Worlds) -> None:
    async with with_dns(world) as (w, dns):
        body: Json = {"name": NAME, "owner": "ada"}
        merge: Json = {"name": "fs:checked", "sources": ["fs:read", "json:check"]}
        for headers in ({}, {"Authorization": "Basic bm9vcjpub29y"}, APPROVER):
            for answer in (
                await w.http.post("/api/dns/transfer", json=body, headers=headers),
                await w.http.get("/api/dns/whois", params={"name": NAME}, headers=headers),
                await w.http.post("/api/dns/merge", json=merge, headers=headers),
            ):
                assert answer.status_code == 200, answer.text
        asked = [(each.principal, each.is_admin) for each in dns.asked]
        assert asked == [("mira", False)] * 8 + [("approver:noor", True)] * 4


async def test_a_wrong_key_is_refused_and_not_taken_for_an_agents(world: Worlds) -> None:
    async with with_dns(world) as (w, dns):
        headers = {"Authorization": "Bearer guessed"}
        answer = await w.http.post("/api/dns/unyank", json={"name": NAME}, headers=headers)
        assert answer.status_code == 401
        assert (await w.http.get("/api/dns/records", headers=headers)).status_code == 401
        assert dns.asked == []


async def test_an_approver_without_the_role_is_no_admin(world: Worlds) -> None:
    async with world(gateway_approver_is_admin=False) as w:
        dns = FakeDns(MemoryBus(w.broker))
        await dns.start()
        answer = await w.http.post("/api/dns/unyank", json={"name": NAME}, headers=APPROVER)
        assert answer.status_code == 200, answer.text
        (asked,) = dns.changes
        assert (asked.principal, asked.is_admin) == ("approver:noor", False)


async def test_a_change_under_one_key_is_one_request_and_without_a_key_each_its_own(
    world: Worlds,
) -> None:
    async with with_dns(world) as (w, dns):
        for key in ("k1", "k1", "k2", None, None):
            headers = {} if key is None else {"Idempotency-Key": key}
            body = {"name": "fs:read", "new_name": "fs:load"}
            answer = await w.http.post("/api/dns/rename", json=body, headers=headers)
            assert answer.status_code == 200, answer.text
        ids = [change.request_id for change in dns.changes]
        assert ids[0] == ids[1]
        assert len(set(ids)) == 4


async def test_another_change_under_a_key_is_another_request(world: Worlds) -> None:
    async with with_dns(world) as (w, dns):
        for path, body in (
            ("yank", {"name": "fs:read", "reason": "slow"}),
            ("yank", {"name": "fs:load", "reason": "slow"}),
            ("unyank", {"name": "fs:read"}),
            ("rename", {"name": "fs:read", "new_name": "fs:load"}),
        ):
            headers = {"Idempotency-Key": "k1"}
            answer = await w.http.post(f"/api/dns/{path}", json=body, headers=headers)
            assert answer.status_code == 200, answer.text
        assert len({change.request_id for change in dns.changes}) == 4


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("not_found", 404, "not_found"),
        ("conflict", 409, "conflict"),
        ("invalid", 422, "invalid_request"),
        ("unavailable", 503, "unavailable"),
    ],
)
async def test_an_error_of_the_registry_is_one_of_the_route(
    code: QueryErrorCode, status: int, kind: str, world: Worlds
) -> None:
    async with with_dns(world) as (w, dns):
        dns.failure = QueryFailed(code, "fs:read belongs to ada")
        for answer in (
            await w.http.get("/api/dns/lookup", params={"name": "fs:read"}),
            await w.http.post("/api/dns/unyank", json={"name": "fs:read"}),
        ):
            assert answer.status_code == status
            error = answer.json()["error"]
            assert error["kind"] == kind
            assert error["message"].endswith("fs:read belongs to ada")
            if code != "unavailable":
                assert error == {"kind": kind, "message": "fs:read belongs to ada"}


@pytest.mark.parametrize(
    ("params", "field", "why"),
    [
        ({}, "name", "is missing"),
        ({"name": "Fs:read"}, "name", "the namespace 'Fs'"),
        ({"name": "fs:read@v1.x"}, "name", "selects no version"),
        ({"name": "fs:read", "principal": "ada"}, "principal", "unknown field"),
    ],
)
async def test_an_invalid_name_is_rejected_with_the_part_that_is_wrong(
    params: Json, field: str, why: str, world: Worlds
) -> None:
    async with with_dns(world) as (w, dns):
        answer = await w.http.get("/api/dns/whois", params=params)
        assert answer.status_code == 422
        (fault,) = answer.json()["error"]["fields"]
        assert fault["field"] == field
        assert why in fault["message"]
        assert dns.asked == []


@pytest.mark.parametrize(
    ("path", "body", "field", "why"),
    [
        ("rename", {"name": "fs:read", "new_name": "dns:x"}, "new_name", "reserved"),
        ("rename", {"name": "fs:read", "new_name": "a:b", "scope": {}}, "scope", "unknown field"),
        ("yank", {"name": "fs:read", "reason": ""}, "reason", "at least 1"),
        ("yank", {"name": "fs:read"}, "reason", "is missing"),
        (
            "yank",
            {"name": "fs:read", "reason": "a\0b"},
            "reason",
            "must be text that is not blank, without NUL",
        ),
        ("tag", {"name": "fs:read"}, "body", "either version_tag, or tags"),
        (
            "tag",
            {"name": "fs:read", "version_tag": "1.2"},
            "version_tag",
            "must be a whole version tag, as v1.2.0",
        ),
        (
            "tag",
            {"name": "fs:read", "version_tag": "v1.0.0", "add": ["io"]},
            "body",
            "either version_tag, or tags",
        ),
        ("visibility", {"name": "fs:read", "visibility": "all"}, "visibility", "'public'"),
        ("fork", {"source": "fs:read", "name": "nocolon"}, "name", "no colon"),
        ("transfer", {"name": "fs:read", "owner": ""}, "owner", "at least 1"),
        ("transfer", {"name": "fs:read", "owner": " "}, "owner", "must be text that is not blank"),
        ("tag", {"name": "", "add": ["a"]}, "name", "must be a capability, as fs:read_json"),
        ("tag", {"name": "fs:read", "add": ["A b"]}, "add.0", "must be a tag, as json"),
        ("merge", {"name": "fs:a", "sources": ["fs:read"]}, "sources", "at least 2"),
        ("merge", {"name": "fs:a", "sources": ["a:b", "c:d", "B"]}, "sources.2", "no colon"),
    ],
)
async def test_an_invalid_change_is_rejected_with_the_field(
    path: str, body: Json, field: str, why: str, world: Worlds
) -> None:
    async with with_dns(world) as (w, dns):
        answer = await w.http.post(f"/api/dns/{path}", json=body)
        assert answer.status_code == 422
        (fault,) = answer.json()["error"]["fields"]
        assert fault["field"] == field, fault
        assert why in fault["message"]
        assert dns.asked == []


async def test_a_key_that_is_no_header_text_is_rejected(world: Worlds) -> None:
    async with with_dns(world) as (w, dns):
        headers = {"Idempotency-Key": "two words"}
        answer = await w.http.post("/api/dns/unyank", json={"name": "fs:read"}, headers=headers)
        assert answer.status_code == 422
        assert answer.json()["error"]["fields"][0]["field"] == "Idempotency-Key"
        assert dns.asked == []


async def test_reads_by_name_search_and_list_tell_the_registry_who_asks(world: Worlds) -> None:
    async with world() as w:
        asked: list[str | None] = w.peers.principals
        await w.http.get("/api/capabilities")
        await w.http.get("/api/capabilities/fs:none")
        await w.http.post("/api/discover", json={"intent": "read"})
        await w.http.post("/api/execute", json={"intent": "read"})
        await w.http.post("/api/execute", json={"capability": "fs:none"})
        assert asked == ["mira"] * 5
