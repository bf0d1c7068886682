"""The tools `meta:*` and `learn:feedback`."""

from uuid import UUID

import pytest

from pml_common.contracts import catalog
from pml_common.contracts.decision import Policy, PolicyRule
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
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.domain.api.introspection import AskTools, tool_summaries
from pml_gateway.domain.api.speculation_threshold import SpeculationThreshold
from pml_gateway.ports import Caller, CallOrigin
from services.gateway.tests.support.builders import READ, SCOPE, WRITE
from services.gateway.tests.support.dns import example
from services.gateway.tests.support.std import std_servers

ORIGIN = CallOrigin(Caller(SCOPE, "mira"), UUID(int=7))


async def answered(tool: str, args: JsonObject) -> tuple[list[object], JsonObject]:
    """Call a tool, and return what the learner was asked and the answer."""
    bus, asked = MemoryBus(), list[object]()

    async def usage(query: ListToolUsage) -> ToolUsagePage:
        asked.append(query)
        return example(catalog.LIST_TOOL_USAGE)

    async def judged(query: ListFeedback) -> FeedbackPage:
        asked.append(query)
        return example(catalog.LIST_FEEDBACK)

    async def ranking(query: ShowEvidence) -> EvidenceState:
        asked.append(query)
        return example(catalog.SHOW_EVIDENCE)

    async def judge(query: GiveFeedback) -> Feedback:
        asked.append(query)
        return example(catalog.GIVE_FEEDBACK)

    await bus.serve(catalog.LIST_TOOL_USAGE, usage)
    await bus.serve(catalog.LIST_FEEDBACK, judged)
    await bus.serve(catalog.SHOW_EVIDENCE, ranking)
    await bus.serve(catalog.GIVE_FEEDBACK, judge)
    outcome = await std_servers(bus).call(tool, args, 5.0, ORIGIN)
    assert outcome.status == "ok", outcome.message
    assert isinstance(outcome.result, dict)
    return asked, outcome.result


async def test_the_tools_of_a_server_are_listed_with_their_verdicts() -> None:
    _, found = await answered("meta:tools", {"server": "meta", "limit": 2})
    tools = found["tools"]
    assert isinstance(tools, list)
    assert (found["total"], len(tools)) == (3, 2)
    assert isinstance(tools[0], dict)
    assert (tools[0]["id"], tools[0]["verdict"]) == ("meta:servers", "allow")


def test_what_the_policy_denies_is_not_listed() -> None:
    policy = Policy(rules=(PolicyRule(pattern="fs:read", verdict="deny"),))
    found = tool_summaries([WRITE, READ], policy, AskTools())
    assert [each.id for each in found.tools] == [WRITE.tool_id]
    assert tool_summaries([WRITE, READ], Policy(), AskTools(text="FS:R", offset=1)).total == 1


async def test_servers_are_listed_with_their_state() -> None:
    _, found = await answered("meta:servers", {})
    servers = found["servers"]
    assert isinstance(servers, list)
    assert [each["name"] for each in servers if isinstance(each, dict)] == ["dns", "learn", "meta"]


async def test_stats_are_those_of_the_callers_scope() -> None:
    asked, found = await answered("meta:stats", {"server": "pml-capabilities", "limit": 5})
    assert asked == [
        ListToolUsage(scope=SCOPE, server_id="pml-capabilities", limit=5),
        ListFeedback(scope=SCOPE, limit=5),
        ShowEvidence(scope=SCOPE),
    ]
    listed = example(catalog.LIST_TOOL_USAGE)
    usage = listed.model_dump(mode="json", exclude={"next_cursor"})
    feedback = example(catalog.LIST_FEEDBACK).model_dump(mode="json")["feedback"]
    speculation = SpeculationThreshold(threshold=0.5, configured=0.5, lowest=0.4, highest=0.6)
    told = {
        "feedback": feedback,
        "ranking": example(catalog.SHOW_EVIDENCE).model_dump(mode="json"),
        "speculation": speculation.model_dump(mode="json"),
    }
    assert found == {**usage, **told}


@pytest.mark.parametrize("useful", [True, False])
async def test_an_opinion_is_the_callers(useful: bool) -> None:
    args: JsonObject = {"workflow_id": str(UUID(int=3)), "useful": useful, "comment": "late"}
    asked, found = await answered("learn:feedback", args)
    assert asked == [
        GiveFeedback(
            scope=SCOPE,
            principal="mira",
            workflow_id=UUID(int=3),
            useful=useful,
            comment="late",
        )
    ]
    assert found == example(catalog.GIVE_FEEDBACK).model_dump(mode="json")
