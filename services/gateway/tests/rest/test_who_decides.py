"""Deciding requires the approver's key; executing and reading do not."""

import pytest

from services.gateway.tests.support.harness import APPROVER, Worlds

pytestmark = pytest.mark.integration


def _path(workflow_id: object) -> str:
    return f"/api/workflows/{workflow_id}/approval"


@pytest.mark.parametrize("decision", ["approve", "continue", "deny", "abort", "replan"])
@pytest.mark.parametrize(
    "shown",
    [
        {},
        {"Authorization": "Bearer guessed"},
        {"Authorization": "Basic bm9vcjpub29y"},
        {"Origin": "http://127.0.0.1:8080"},
        {"X-Forwarded-User": "noor", "Cookie": "approver=noor"},
    ],
    ids=["agent", "wrong key", "other scheme", "page of ours", "claims"],
)
async def test_without_the_key_a_decision_gets_401_with_the_remedy_and_changes_nothing(
    shown: dict[str, str], decision: str, world: Worlds
) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        answer = await w.http.post(
            _path(asked["workflow_id"]), json={"decision": decision}, headers=shown
        )
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        error = answer.json()["error"]
        assert error["kind"] == "unauthorized"
        assert "pml approvals approve WORKFLOW" in error["message"]
        assert (await w.workflow(asked["workflow_id"]))["status"] == "approval_required"
        assert w.peers.runs == []


async def test_a_page_of_another_site_may_not_decide_even_with_the_key(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        answer = await w.http.post(
            _path(asked["workflow_id"]),
            json={"decision": "approve"},
            headers={**APPROVER, "Origin": "http://127.0.0.1:3000"},
        )
        assert answer.status_code == 403
        assert (await w.workflow(asked["workflow_id"]))["status"] == "approval_required"


async def test_preflight_requests_get_no_permission(world: Worlds) -> None:
    async with world() as w:
        answer = await w.http.options(
            _path("x"),
            headers={
                "Origin": "http://127.0.0.1:3000",
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization",
            },
        )
        assert "access-control-allow-origin" not in answer.headers


async def test_the_key_does_not_change_the_principal_of_an_execution(world: Worlds) -> None:
    async with world() as w:
        answer = await w.http.post("/api/execute", json={"code": "ask"}, headers=APPROVER)
        assert answer.json()["status"] == "approval_required"
        view = await w.workflow(answer.json()["workflow_id"])
        assert view["principal"] == "mira"
        page = (await w.http.get("/api/approvals")).json()
        assert [one["principal"] for one in page["approvals"]] == ["mira"]


async def test_a_gateway_without_an_approver_accepts_no_decision(world: Worlds) -> None:
    async with world(gateway_approver_key_sha256=None) as w:
        asked = await w.execute("ask")
        answer = await w.decide(asked["workflow_id"], "approve")
        assert answer.status_code == 401
        assert "PML_GATEWAY_APPROVER_KEY_SHA256" in answer.json()["error"]["message"]


async def test_openapi_requires_the_credential_for_deciding_only(world: Worlds) -> None:
    async with world() as w:
        described = (await w.http.get("/openapi.json")).json()
        assert described["components"]["securitySchemes"]["approver"]["scheme"] == "bearer"
        secured = [
            (method, path)
            for path, operations in described["paths"].items()
            for method, operation in operations.items()
            if {} not in operation.get("security", [{}])
        ]
        assert secured == [
            ("post", "/api/approvals/elicitation"),
            ("post", "/api/workflows/{workflow_id}/approval"),
            ("post", "/api/learning/rebuild"),
            ("post", "/api/index/reindex"),
            ("post", "/api/servers/reload"),
            ("post", "/api/servers/{server}/accept"),
        ]
        optional = described["paths"]["/api/dns/rename"]["post"]["security"]
        assert optional == [{"approver": []}, {}]
        decide = described["paths"]["/api/workflows/{workflow_id}/approval"]["post"]
        assert "401" in decide["responses"]
