"""Sources of programs, as they are sent to the analyzer."""

import pytest

from pml_common.contracts.source import FromDag, FromTool
from services.gateway.tests.support.builders import ELSEWHERE, SCOPE, workflow
from services.gateway.tests.support.fakes import record
from services.gateway.tests.support.harness import Worlds

pytestmark = pytest.mark.integration

DAG = {"tasks": [{"id": "a", "tool": "fs:read"}]}
TOOL = FromTool(tool_id="fs:read", default_args={"path": "/a"})


async def test_a_dag_and_a_tool_are_requested_as_they_were_sent(world: Worlds) -> None:
    async with world() as w:
        tool = {"tool_id": TOOL.tool_id, "default_args": TOOL.default_args}
        for body in ({"dag": DAG}, {"tool": tool}, {"code": "return 1;"}):
            answer = await w.http.post("/api/execute", json=body)
            assert answer.json()["status"] == "success"
        sources = [asked.source for asked in w.peers.requests]
        assert sources == [FromDag.model_validate({"dag": DAG}), TOOL, None]


async def test_a_program_of_another_scope_is_requested_with_its_source(world: Worlds) -> None:
    async with world() as w:
        for scope, visibility in ((SCOPE, "project"), (ELSEWHERE, "public")):
            found = record(workflow(scope=scope), "fs:look")
            more = {"source": TOOL, "visibility": visibility, "code": "return 1;"}
            w.peers.names["fs:look"] = found.model_copy(update=more)
            answer = await w.http.post("/api/execute", json={"capability": "fs:look"})
            assert answer.json()["status"] == "success"
        assert [asked.source for asked in w.peers.requests] == [None, TOOL]
