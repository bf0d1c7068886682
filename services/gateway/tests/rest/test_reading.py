"""Routes that read workflows, capabilities, traces, tools and servers."""

import json
import re
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.learner import ExecutionTrace
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import LogLine
from pml_gateway.adapters.stub_tools import ECHO
from pml_gateway.domain.api.task_results import GetTaskResult
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import ELSEWHERE, READ, SCOPE, WRITE, workflow
from services.gateway.tests.support.fakes import record
from services.gateway.tests.support.harness import READY, Worlds, failed

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).parents[4] / "libs/pml_common/examples"


async def test_a_workflow_is_shown_with_all_its_details(world: Worlds) -> None:
    async with world() as w:
        answer = await w.execute("return 1;", intent="look", args={"path": "/a"})
        view = await w.workflow(answer["workflow_id"])
        assert view["status"] == "success"
        assert view["code"] == "return 1;"
        assert view["args"] == {"path": "/a"}
        assert view["structure"]["nodes"][0]["tool"] == "fs:read"
        assert view["decision"]["verdict"] == "allow"
        assert view["analysis"]["code_hash"]
        assert view["result"] == answer["result"]
        assert view["error"] is None
        assert view["approval"] is None
        assert view["finished_at"] >= view["created_at"]


async def test_all_that_is_kept_of_a_console_is_read_in_pages(world: Worlds) -> None:
    async with world() as w:
        lines = [{"level": "info", "message": f"line {n}"} for n in range(300)]
        w.peers.logs = tuple(LogLine.model_validate(line) for line in lines)
        w.peers.logs_omitted = 19_700
        answer = await w.execute("return 1;")
        assert (answer["logs"], answer["logs_omitted"]) == (lines[100:], 19_800)
        assert "the program wrote 20,000 lines" in answer["notices"][0]
        path = f"/api/workflows/{answer['workflow_id']}/console"
        first = (await w.http.get(path, params={"limit": 200})).json()
        assert (first["lines"], first["lost"], first["total"]) == (lines[:200], 19_700, 300)
        last = (await w.http.get(path, params={"offset": first["next_offset"]})).json()
        assert (last["lines"], last["next_offset"]) == (lines[200:], None)
        tool = await w.parts.use_cases.agents.result(
            Caller(SCOPE, "mira"),
            GetTaskResult(workflow_id=UUID(answer["workflow_id"]), part="console", limit=200_000),
        )
        assert tool.page is not None
        assert json.loads(tool.page.text) == lines
        assert (await w.http.get(f"/api/workflows/{uuid4()}/console")).status_code == 404


async def test_workflows_are_listed_in_pages_newest_first(world: Worlds) -> None:
    async with world() as w:
        made = [(await w.execute(f"return {n};"))["workflow_id"] for n in range(3)]
        page = (await w.http.get("/api/workflows", params={"limit": 2})).json()
        assert page["total"] == 3
        assert [each["workflow_id"] for each in page["workflows"]] == made[:0:-1]
        rest = (await w.http.get("/api/workflows", params={"offset": 2})).json()
        assert [each["workflow_id"] for each in rest["workflows"]] == made[:1]
        assert "code" not in page["workflows"][0]


async def test_capabilities_come_from_the_registry_by_id_or_name(world: Worlds) -> None:
    async with world() as w:
        known = record(workflow(), "fs:known")
        w.peers.names |= {
            "fs:known": known,
            "fs:theirs": record(workflow(scope=ELSEWHERE), "fs:theirs"),
        }
        page = (await w.http.get("/api/capabilities")).json()
        assert [each["name"] for each in page["capabilities"]] == ["fs:known"]
        one = await w.http.get("/api/capabilities/fs:known")
        assert one.json()["capability_id"] == str(known.capability_id)
        theirs = await w.http.get("/api/capabilities/fs:theirs")
        assert theirs.status_code == 404
        assert "no capability" in theirs.json()["error"]["message"]


async def test_traces_come_from_the_learner(world: Worlds) -> None:
    async with world() as w:
        new = workflow()
        for path in (f"/api/traces/{new.workflow_id}", f"/api/workflows/{new.workflow_id}/trace"):
            page = (await w.http.get(path)).json()
            assert page == {"traces": [], "total": 0, "next_cursor": None}
        asked = {"order": "priority", "intent": "a b", "limit": 3}
        assert (await w.http.get("/api/traces", params=asked)).json()["total"] == 0
        last = w.peers.trace_queries[-1]
        assert last.model_dump(include=set(asked)) == asked
        assert last.scope == SCOPE


async def test_one_trace_comes_from_the_learner(world: Worlds) -> None:
    path = EXAMPLES / "qry.learner.find-trace.v1.reply.json"
    example = ExecutionTrace.model_validate_json(path.read_text())
    trace = example.model_copy(update={"large_results": ()})
    async with world() as w:
        w.peers.traces = (trace,)
        found = await w.http.get(f"/api/trace/{trace.trace_id}")
        assert ExecutionTrace.model_validate(found.json()) == trace
        missing = await w.http.get(f"/api/trace/{trace.workflow_id}")
        assert missing.status_code == 404
        assert "no trace" in missing.json()["error"]["message"]


async def test_a_large_result_of_a_trace_says_until_when_its_workflow_has_it(world: Worlds) -> None:
    path = EXAMPLES / "qry.learner.find-trace.v1.reply.json"
    known = ExecutionTrace.model_validate_json(path.read_text())
    (of_task,) = known.large_results
    own = of_task.model_copy(update={"trace_id": known.trace_id, "task_id": None})
    async with world(gateway_result_ttl_s=0.001) as w:
        done = await w.execute("return 1;")
        workflow_id = UUID(done["workflow_id"])
        trace = known.model_copy(
            update={"workflow_id": workflow_id, "large_results": (of_task, own)}
        )
        elsewhere = trace.model_copy(update={"trace_id": uuid4(), "workflow_id": uuid4()})
        w.peers.traces = (trace, elsewhere)

        async def large(path: str) -> list[tuple[bool, bool]]:
            body = (await w.http.get(path)).json()
            traces = body.get("traces", [body])
            found = [each for one in traces for each in one["large_results"]]
            return [(each["expired"], each["kept_until"] is not None) for each in found]

        one = f"/api/trace/{trace.trace_id}"
        assert await eventually(lambda: large(one)) == [(True, True), (False, True)]
        listed = [(True, True), (False, True), (True, False), (True, False)]
        assert await large("/api/traces") == listed
        assert (await w.http.delete(f"/api/workflows/{workflow_id}")).status_code == 204
        assert await large(one) == [(True, False), (True, False)]


async def test_discovery_comes_from_the_registry(world: Worlds) -> None:
    async with world() as w:
        page = (await w.http.post("/api/discover", json={"intent": "read", "limit": 2})).json()
        assert page["hits"][0]["description"] == "read"
        assert page["total"] == 1
        bad = await w.http.post("/api/discover", json={"intent": "read", "min_score": 2})
        assert bad.status_code == 422
        assert bad.json()["error"]["fields"][0]["field"] == "min_score"


async def test_what_the_policy_denies_is_neither_found_nor_suggested(world: Worlds) -> None:
    policy = {"rules": [{"pattern": READ.tool_id, "verdict": "deny"}]}
    async with world(gateway_policy=policy) as w:
        page = (await w.http.post("/api/discover", json={"intent": "read"})).json()
        assert page.pop("discovery_id")
        assert page == {"hits": [], "total": 0, "degraded": False}
        answer = (await w.http.post("/api/execute", json={"intent": "read"})).json()
        assert (answer["status"], answer.get("suggestions", [])) == ("suggestions", [])


async def test_tools_are_those_of_the_servers_without_the_denied(world: Worlds) -> None:
    policy = {"rules": [{"pattern": "fs:write", "verdict": "deny"}]}
    async with world(gateway_policy=policy) as w:
        tools = (await w.http.get("/api/tools")).json()["tools"]
        assert tools == [READ.model_dump(mode="json")]
    async with world() as w:
        w.servers.listed = {**w.servers.listed, "pml_stub": (ECHO,)}
        tools = (await w.http.get("/api/tools")).json()["tools"]
        assert [f"{each['server']}:{each['name']}" for each in tools] == [
            "fs:read",
            "fs:write",
            "pml_stub:echo",
        ]


async def test_tools_are_shown_with_what_results_showed_of_their_present_definition(
    world: Worlds,
) -> None:
    learned: JsonObject = {"type": "object", "properties": {"size": {"type": "integer"}}}
    async with world() as w:
        seen = READ.model_copy(update={"learned_output": learned})
        other = WRITE.model_copy(update={"description": "Of before.", "learned_output": learned})
        w.peers.catalog = (seen, other)
        answer = (await w.http.get("/api/tools")).json()
        assert answer["tools"] == [each.model_dump(mode="json") for each in (seen, WRITE)]
        assert answer["notices"] == []
    async with world(peers_there=False) as w:
        answer = (await w.http.get("/api/tools")).json()
        assert [tool["name"] for tool in answer["tools"]] == ["read", "write"]
        (notice,) = answer["notices"]
        assert notice.startswith("learned outputs are not shown: ")


async def test_a_policy_file_holds_for_programs_and_single_calls_from_its_change_on(
    tmp_path: Path, world: Worlds
) -> None:
    file = tmp_path / "policy.json"
    async with world(gateway_policy_file=file) as w:
        assert (await w.http.get("/healthz")).json()["policy"] == "ok"
        file.write_text('{"rules": [{"pattern": "fs:write", "verdict": "deny"}]}')
        tools = (await w.http.get("/api/tools")).json()["tools"]
        assert tools == [READ.model_dump(mode="json")]
        await w.execute("return 1;")
        assert [rule.pattern for rule in w.peers.requests[-1].policy.rules] == ["fs:write"]
        outcome = await w.parts.use_cases.agents.call_tool(SCOPE, "mira", "fs:write", {}, 5.0)
        assert isinstance(outcome, ToolOutcome)
        assert outcome.status == "refused"
        file.write_text('{"rule": []}')
        health = await w.http.get("/healthz")
        assert (health.status_code, health.json()["policy"]) == (
            200,
            f"{file}: rule: is not a known field",
        )
        assert (await w.http.get("/api/tools")).json()["tools"] == tools


async def test_servers_and_health_report_what_is_wrong_with_each(world: Worlds) -> None:
    async with world() as w:
        w.servers.stands = {"fs": READY, "web": failed(READY, "connection refused")}
        servers = (await w.http.get("/api/servers")).json()["servers"]
        assert [(each["name"], each["state"]) for each in servers] == [
            ("fs", "ready"),
            ("web", "failed"),
        ]
        health = await w.http.get("/healthz")
        assert health.status_code == 200
        assert health.json()["mcp_servers"] == {
            "fs": "ready",
            "web": "failed: connection refused",
        }
        assert (await w.http.get("/livez")).json() == {"status": "ok"}


async def test_every_route_is_described_with_an_id_and_the_error_form(world: Worlds) -> None:
    async with world(peers_there=False) as w:
        api = (await w.http.get("/openapi.json")).json()
        operations = {
            f"{method} {path}": operation
            for path, methods in api["paths"].items()
            for method, operation in methods.items()
        }
        ids = [operation["operationId"] for operation in operations.values()]
        assert len(ids) == len(set(ids)) == 59
        assert all(re.fullmatch(r"[a-z_]+", each) for each in ids)
        for name, operation in operations.items():
            if "/api/" in name:
                shape = operation["responses"]["422"]["content"]["application/json"]["schema"]
                assert shape["$ref"].endswith("/ErrorResponse"), name
        answer = api["components"]["schemas"]["ExecuteResponse"]["properties"]
        assert {"capability_id", "capability_name", "workflow_id"} <= set(answer)
