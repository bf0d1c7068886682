"""Use and feedback, which REST reads from the learner; former names of tools."""

from typing import cast
from uuid import UUID

import pytest

from pml_common.contracts import catalog
from pml_common.contracts.learner import (
    Feedback,
    FeedbackPage,
    GiveFeedback,
    ListFeedback,
    ListToolUsage,
    ToolUsagePage,
)
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.uses import EvidenceState, ShowEvidence
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.cached import learn, look
from services.gateway.tests.support.dns import example
from services.gateway.tests.support.harness import World

pytestmark = pytest.mark.integration


async def test_a_call_by_name_is_counted_under_it_and_a_program_under_none(w: World) -> None:
    learn(w)
    await look(w)
    discovery = UUID(int=9)
    await w.execute("return 1;", discovery_id=str(discovery))
    learn(w, named=False)
    await look(w)
    assert [run.called_as for run in w.peers.runs] == ["fs:look", None, None]
    assert [run.discovery_id for run in w.peers.runs] == [None, discovery, None]


async def test_the_same_key_after_another_discovery_is_the_same_request(w: World) -> None:
    first = await w.execute(idempotency_key="k", discovery_id=str(UUID(int=1)))
    again = await w.execute(idempotency_key="k", discovery_id=str(UUID(int=2)))
    assert again["workflow_id"] == first["workflow_id"]


async def test_use_and_feedback_are_those_of_the_callers_scope(w: World) -> None:
    asked: list[object] = []

    async def usage(query: ListToolUsage) -> ToolUsagePage:
        asked.append(query)
        return example(catalog.LIST_TOOL_USAGE)

    async def judged(query: ListFeedback) -> FeedbackPage:
        asked.append(query)
        return example(catalog.LIST_FEEDBACK)

    async def judge(query: GiveFeedback) -> Feedback:
        asked.append(query)
        return example(catalog.GIVE_FEEDBACK)

    async def ranking(query: ShowEvidence) -> EvidenceState:
        asked.append(query)
        return example(catalog.SHOW_EVIDENCE)

    bus = w.peers.bus
    await bus.serve(catalog.SHOW_EVIDENCE, ranking)
    await bus.serve(catalog.LIST_TOOL_USAGE, usage)
    await bus.serve(catalog.LIST_FEEDBACK, judged)
    await bus.serve(catalog.GIVE_FEEDBACK, judge)
    used = await w.http.get("/api/tools/usage?server_id=pml-capabilities&limit=3")
    opinions = await w.http.get("/api/feedback?offset=1")
    given = await w.http.post(f"/api/workflows/{UUID(int=3)}/feedback", json={"useful": True})
    ranked = await w.http.get("/api/ranking")
    assert [each.status_code for each in (used, opinions, given, ranked)] == [200] * 4
    assert ranked.json()["ndcg_gain"] == {"mean": 0.07, "low": 0.03, "high": 0.11}
    assert used.json()["usage"][0]["tool_id"] == "cap:fs:read_json"
    assert opinions.json()["total"] == 1
    assert given.json()["useful"] == 3
    assert asked == [
        ListToolUsage(scope=SCOPE, server_id="pml-capabilities", limit=3),
        ListFeedback(scope=SCOPE, offset=1),
        GiveFeedback(scope=SCOPE, principal="mira", workflow_id=UUID(int=3), useful=True),
        ShowEvidence(scope=SCOPE),
    ]


async def test_old_names_answer_and_say_what_to_call(w: World) -> None:
    tools = w.tools
    dag: JsonObject = {"tasks": [{"id": "a", "tool": "fs:read"}]}
    calls: list[tuple[str, JsonObject, str]] = [
        ("pml_search_tools", {"query": "read", "top_k": 3}, "pml_discover"),
        ("pml_search_capabilities", {"intent": "read"}, "pml_discover"),
        ("pml_find_capabilities", {"intent": "read"}, "pml_discover"),
        ("pml_execute_dag", {"workflow": dag, "intent": "read"}, "pml_execute"),
        ("pml_execute_code", {"code": "return 1;", "context": {"a": 1}}, "pml_execute"),
    ]
    listed = {each.name for each in (await tools.list_tools(Caller(SCOPE, "mira"), "all")).tools}
    for name, args, instead in calls:
        answer = await tools.call(Caller(SCOPE, "mira"), name, args)
        assert not answer.is_error, answer
        assert len(answer.content) == 2
        assert f"{name} is deprecated" in str(answer.content[1])
        assert f"call {instead} " in str(answer.content[1])
        assert answer.structured_content
        assert name not in listed
    assert [cast(str, run.intent) for run in w.peers.runs] == ["read", None]
