"""Errors say what is wrong, where, and what to do, always in one form."""

from collections.abc import AsyncIterator
from uuid import UUID

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import SCOPE, workflow
from services.gateway.tests.support.harness import Json, World, Worlds

pytestmark = pytest.mark.integration

JSON = {"content-type": "application/json"}
LISTS = (
    "workflows",
    "approvals",
    "capabilities",
    "capabilities/fs:read/dependencies",
    "traces",
    f"traces/{UUID(int=1)}",
    "tools/usage",
    "feedback",
)


def error_of(answer: httpx2.Response) -> Json:
    body = answer.json()
    assert set(body) == {"error"}
    assert {"kind", "message"} <= set(body["error"]) <= {"kind", "message", "fields"}
    return body["error"]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ('{"code": ', "line 1 column 9"),
        ('{\n  "code": "1",\n}', "line 3 column 1"),
        ('{"code": "1", "args": {"n": NaN}}', "line 1 column"),
        ('{"code": "\\ud800"}', "line 1 column"),
        ('{"code": "\xff', "line 1 column"),
        ("[" * 5000, "line 1 column"),
        ('{"code": "1", "args": {"a": {"b": 1, "c": 2, "b": 3}}}', "has the key 'b' twice"),
    ],
)
async def test_malformed_json_is_refused_with_its_place(
    body: str, where: str, world: Worlds
) -> None:
    async with world(peers_there=False) as w:
        content = body.encode("latin-1")
        answer = await w.http.post("/api/execute", content=content, headers=JSON)
        assert answer.status_code == 422
        error = error_of(answer)
        assert error["kind"] == "invalid_request"
        assert error["message"].startswith("body: not JSON")
        assert where in error["message"]


async def test_a_bad_name_is_answered_with_what_is_wrong_with_it(world: Worlds) -> None:
    async with world(peers_there=False) as w:
        answer = await w.http.post("/api/execute", json={"code": "1", "name": "dns:look"})
        assert answer.status_code == 422
        assert error_of(answer)["message"].startswith("name: the namespace 'dns' is reserved")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"code": "1", "cod": "2"}, "cod"),
        ({"code": "1", "graph": {}}, "graph"),
        ({"dag": {}}, "dag.tasks"),
        ({"code": 1}, "code"),
        ({"code": "1", "args": "x"}, "args"),
        ({"code": "1", "timeout": -1}, "timeout"),
        ({"code": "1", "timeout": 99999}, "timeout"),
        ({"code": "1", "name": "nope"}, "name"),
        ({"code": "1", "capability": "a:b"}, "capability"),
        ({"capability": "a:b", "name": "a:c"}, "name"),
        ({"code": "1", "update": True}, "update"),
        ({"code": "1", "name": "a:b", "version_tag": "v1.0.0"}, "version_tag"),
        ({"code": "1", "name": "a:b", "update": True, "version_tag": "1.0"}, "version_tag"),
        ({"code": "1", "name": "a:b", "change_summary": "less"}, "change_summary"),
        ({"code": "1", "args": {}, "context": {}}, "context"),
        ({}, "code"),
        ([], "body"),
        ("text", "body"),
    ],
)
async def test_an_invalid_field_is_named(body: object, field: str, world: Worlds) -> None:
    async with world(peers_there=False) as w:
        answer = await w.http.post("/api/execute", json=body)
        assert answer.status_code == 422
        error = error_of(answer)
        assert [one["field"] for one in error["fields"]] == [field]
        assert field in error["message"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("discover", {"intent": "x", "offset": False}, "offset"),
        ("discover", {"intent": "x", "offset": 2**63}, "offset"),
        ("discover", {"intent": "x", "limit": "3"}, "limit"),
        ("discover", {"intent": "x", "min_score": True}, "min_score"),
        ("execute", {"code": "1", "update": 1}, "update"),
        ("execute", {"code": "1", "timeout": True}, "timeout"),
        ("execute", {"code": "1", "timeout": "3"}, "timeout"),
        (f"workflows/{UUID(int=1)}/cancel", {"wait": "yes"}, "wait"),
    ],
)
async def test_no_value_is_taken_for_one_of_another_kind(
    path: str, body: Json, field: str, world: Worlds
) -> None:
    async with world(peers_there=False) as w:
        answer = await w.http.post(f"/api/{path}", json=body)
        assert answer.status_code == 422
        assert [one["field"] for one in error_of(answer)["fields"]] == [field]


async def test_a_number_too_large_to_store_is_rejected(world: Worlds) -> None:
    async with world(peers_there=False) as w:
        content = '{"code": "1", "args": {"n": 1e999}}'
        answer = await w.http.post("/api/execute", content=content, headers=JSON)
        assert answer.status_code == 422
        assert "finite" in error_of(answer)["message"]


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}])
async def test_another_content_type_is_rejected_with_the_right_one(
    headers: dict[str, str], world: Worlds
) -> None:
    async with world(peers_there=False) as w:
        answer = await w.http.post("/api/execute", content='{"code": "1"}', headers=headers)
        assert answer.status_code == 422
        assert "application/json" in error_of(answer)["message"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/workflows?limit=0", "limit"),
        ("/api/workflows?offset=-1", "offset"),
        ("/api/workflows?cursor=none", "cursor"),
        ("/api/workflows?cursor=a", "cursor"),
        *((f"/api/{path}?cursor=none&offset=1", "cursor") for path in LISTS),
        *((f"/api/{path}?offset={2**31}", "offset") for path in LISTS),
        ("/api/workflows/not-an-id", "workflow_id"),
        ("/api/traces/not-an-id", "capability_id"),
        ("/api/traces?order=oldest", "order"),
        ("/api/trace/not-an-id", "trace_id"),
        ("/api/capabilities?limit=many", "limit"),
    ],
)
async def test_an_invalid_parameter_is_named(path: str, field: str, world: Worlds) -> None:
    async with world(peers_there=False) as w:
        answer = await w.http.get(path)
        assert answer.status_code == 422
        assert [one["field"] for one in error_of(answer)["fields"]] == [field]


async def _chunks(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 1000):
        yield b"x" * 1000


async def test_an_oversize_body_is_rejected_whatever_its_declared_length(world: Worlds) -> None:
    async with world(peers_there=False, gateway_max_body_bytes=10_000) as w:
        declared = await w.http.post("/api/execute", content=b"x" * 10_001, headers=JSON)
        chunked = await w.http.post("/api/execute", content=_chunks(20_000), headers=JSON)
        for answer in (declared, chunked):
            assert answer.status_code == 413
            assert error_of(answer)["kind"] == "too_large"
            assert "10000 bytes" in error_of(answer)["message"]
        code = "/" * 9000
        body = {"code": code, "timeout": 0.01}  # nobody analyses it
        fits = await w.http.post("/api/execute", json=body)
        assert fits.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example:8080"},
        {"host": "127.0.0.1:8080@evil.example"},
        {"host": "localhost:8081"},
        {"host": "localhost"},
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:3000"},
        {"origin": "null"},
    ],
)
async def test_a_page_of_another_site_is_rejected(headers: dict[str, str], world: Worlds) -> None:
    async with world(peers_there=False) as w:
        for path in ("/api/tools", "/mcp", "/docs"):
            answer = await w.http.get(path, headers=headers)
            assert answer.status_code == 403
            assert error_of(answer)["kind"] == "forbidden"
        assert (await w.http.get("/livez", headers=headers)).status_code == 200
        own = {"host": "localhost:8080", "origin": "http://127.0.0.1:8080"}
        assert (await w.http.get("/api/tools", headers=own)).status_code == 200


@pytest.mark.parametrize("name", ["host", "origin"])
async def test_two_names_in_one_request_are_rejected(name: str, world: Worlds) -> None:
    own = {"host": "127.0.0.1:8080", "origin": "http://127.0.0.1:8080"}[name]
    async with world(peers_there=False) as w:
        answer = await w.http.get("/api/tools", headers=[(name, own), (name, own)])
        assert answer.status_code == 403
        assert "one Host header" in error_of(answer)["message"]


async def test_unknown_paths_and_methods_are_named(world: Worlds) -> None:
    async with world(peers_there=False) as w:
        lost = await w.http.get("/api/nowhere")
        assert lost.status_code == 404
        assert "/api/nowhere" in error_of(lost)["message"]
        wrong = await w.http.get("/api/execute")
        assert wrong.status_code == 405
        assert error_of(wrong)["kind"] == "method_not_allowed"
        assert wrong.headers["allow"] == "POST"
        wrong = await w.http.put("/api/capabilities/fs:read")
        assert wrong.status_code == 405
        assert wrong.headers["allow"] == "GET, PATCH"


async def _refused(w: World, code: str = "return 1;") -> Json:
    answer = await w.http.post("/api/execute", json={"code": code})
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    error = error_of(answer)
    assert error["kind"] == "unavailable"
    return error


async def test_without_nats_nothing_is_accepted_and_the_answer_names_it(world: Worlds) -> None:
    async with world() as w:
        w.broker.available = False
        assert "NATS" in (await _refused(w))["message"]
        assert (await w.http.get("/api/workflows")).json()["total"] == 0
        health = await w.http.get("/healthz")
        assert health.status_code == 503
        assert "NATS" in health.json()["checks"]["nats"]
        w.broker.available = True
        assert (await w.execute())["status"] == "success"


async def test_without_postgres_what_runs_at_once_is_accepted_and_the_rest_is_refused(
    monkeypatch: pytest.MonkeyPatch, world: Worlds
) -> None:
    async def away(*_: object) -> None:
        raise StorageUnavailable("Postgres does not answer")

    async with world() as w:
        with monkeypatch.context() as outage:
            for stores in ("accept", "add", "end", "get", "change", "step_once"):
                outage.setattr(w.kept, stores, away)
            ran = await w.execute()
            assert ran["status"] == "success"
            assert "Postgres" in (await _refused(w, "ask"))["message"]
        assert (await w.execute("ask"))["status"] == "approval_required"
        path = f"/api/workflows/{ran['workflow_id']}"
        await eventually(lambda: _is_stored(w, UUID(str(ran["workflow_id"]))))
        assert (await w.http.get(path)).json()["status"] == "success"


async def _is_stored(w: World, workflow_id: UUID) -> bool:
    found = await w.kept.get(SCOPE, workflow_id)
    return found is not None and found.state == "succeeded"


async def test_a_service_that_does_not_respond_is_named(world: Worlds) -> None:
    async with world(peers_there=False) as w:
        for path in ("/api/capabilities", f"/api/workflows/{workflow().workflow_id}/trace"):
            answer = await w.http.get(path)
            assert answer.status_code == 503
        assert "learner" in error_of(answer)["message"]


async def test_an_internal_error_does_not_leak_secrets(
    monkeypatch: pytest.MonkeyPatch, world: Worlds
) -> None:
    async def break_down(new: Workflow, accepted: WorkflowAccepted) -> None:
        raise RuntimeError("password=hunter2")

    async with world() as w:
        monkeypatch.setattr(w.parts.stores.workflows, "accept_run", break_down)
        answer = await w.http.post("/api/execute", json={"code": "return 1;"})
        assert answer.status_code == 500
        assert error_of(answer)["kind"] == "internal"
        assert "hunter2" not in answer.text


async def test_a_gateway_may_be_configured_to_accept_every_name(world: Worlds) -> None:
    async with world(peers_there=False, gateway_allowed_hosts=("*",)) as w:
        headers = {"host": "pml.example", "origin": "https://pml.example"}
        assert (await w.http.get("/api/tools", headers=headers)).status_code == 200
