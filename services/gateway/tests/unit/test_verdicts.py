"""The gateway's own verdicts, independent of the analysis."""

import pytest

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.capability import NestedCapability
from pml_common.contracts.decision import ArgumentRule, DryRun, Policy, PolicyRule, Verdict
from pml_common.contracts.structure import Argument, LiteralArgument, StaticStructure, TaskNode
from pml_gateway.domain.workflow.verdicts import (
    NO_VERDICTS,
    Verdicts,
    bound_tools,
    denied_now,
    tools_named,
    verdicts_of,
    with_stricter_verdicts,
)
from services.gateway.tests.support.builders import READ, TOOLS, VERDICTS, WRITE, analyzed, workflow

OURS = workflow()
DENY = Policy(rules=(PolicyRule(pattern="fs:write", verdict="deny"),))
UNDER = PolicyRule(
    pattern="fs:write",
    arguments=(ArgumentRule(name="path", under="/work"),),
    verdict="allow",
)


def writes(path: str, verdict: Verdict = "allow") -> ExecutionAnalyzed:
    analysis = analyzed(OURS, verdict, (READ, WRITE))
    arguments: dict[str, Argument] = {"path": LiteralArgument(value=path)}
    nodes = (
        analysis.structure.nodes[0],
        TaskNode(id="n2", tool=WRITE.tool_id, line=2, column=7, arguments=arguments),
    )
    return analysis.model_copy(update={"structure": StaticStructure(nodes=nodes)})


def test_an_analysis_that_allows_what_the_policy_asks_about_is_corrected() -> None:
    decision = with_stricter_verdicts(writes("/a"), VERDICTS).decision
    assert decision.verdict == "ask"
    assert [(tool.tool, tool.verdict) for tool in decision.tools] == [
        ("fs:read", "allow"),
        ("fs:write", "ask"),
    ]
    assert decision.reasons == ("Calls fs:write. Its server does not mark it read-only: ask.",)


def test_an_analysis_that_is_as_strict_is_taken_as_it_is() -> None:
    analysis = writes("/a", "ask")
    assert with_stricter_verdicts(analysis, VERDICTS) == analysis
    assert with_stricter_verdicts(analysis, NO_VERDICTS) == analysis


def test_a_tool_that_the_analysis_decided_nothing_on_is_decided_on() -> None:
    analysis = writes("/a")
    silent = analysis.model_copy(
        update={"decision": analysis.decision.model_copy(update={"tools": ()})}
    )
    decision = with_stricter_verdicts(silent, VERDICTS).decision
    assert decision.verdict == "ask"
    assert {tool.tool: tool.definition_hash for tool in decision.tools} == {
        "fs:read": READ.definition_hash,
        "fs:write": WRITE.definition_hash,
    }
    assert bound_tools(silent, VERDICTS) == ("fs:write",)


def test_the_stricter_of_the_policies_then_and_now_holds() -> None:
    both = verdicts_of((Policy(), DENY), ["fs:write", "fs:gone"], TOOLS.get)
    assert with_stricter_verdicts(writes("/a"), both).decision.verdict == "deny"
    loose = verdicts_of((DENY, Policy(otherwise="allow")), ["fs:write"], TOOLS.get)
    assert with_stricter_verdicts(writes("/a"), loose).decision.verdict == "deny"
    assert len(verdicts_of((Policy(), Policy()), [], TOOLS.get).policies) == 1
    assert denied_now(writes("/a"), both) == "fs:write: The rule fs:write says deny."
    assert denied_now(writes("/a"), VERDICTS) is None
    assert denied_now(None, both) is None


@pytest.mark.parametrize(("path", "verdict"), [("/work/a", "allow"), ("/else", "ask")])
def test_a_rule_on_arguments_decides_calls_that_are_shown(path: str, verdict: Verdict) -> None:
    verdicts = Verdicts((Policy(rules=(UNDER,)),), TOOLS)
    analysis = writes(path)
    assert with_stricter_verdicts(analysis, verdicts).decision.verdict == verdict
    assert bound_tools(analysis, verdicts) == ("fs:write",)


def test_the_strictest_call_decides_also_one_inside_a_capability() -> None:
    inner = writes("/else").structure.nodes[1]
    assert isinstance(inner, TaskNode)
    nested = NestedCapability(
        capability_id=OURS.workflow_id,
        name="a:b",
        code_hash="c",
        verdict="allow",
        reason="",
        called_as=(),
        node_ids=(),
        nodes=(inner,),
    )
    analysis = writes("/work/a").model_copy(update={"capabilities": (nested,)})
    verdicts = Verdicts((Policy(rules=(UNDER,)),), TOOLS)
    assert with_stricter_verdicts(analysis, verdicts).decision.verdict == "ask"
    assert tools_named(analysis) == ["fs:read", "fs:write"]
    assert tools_named(None) == []


def test_only_a_dry_run_has_mocks() -> None:
    analysis = writes("/a")
    mocked = tuple(tool.model_copy(update={"mocked": True}) for tool in analysis.decision.tools)
    lying = analysis.model_copy(
        update={"decision": analysis.decision.model_copy(update={"tools": mocked})}
    )
    assert with_stricter_verdicts(lying, VERDICTS).decision.verdict == "ask"
    asked_dry = Verdicts(VERDICTS.policies, TOOLS, DryRun())
    assert with_stricter_verdicts(lying, asked_dry).decision.verdict == "allow"
    assert bound_tools(lying, asked_dry) == ()
    asks = Verdicts((Policy(read_only="ask"),), TOOLS, DryRun())
    decided = {
        tool.tool: tool.verdict for tool in with_stricter_verdicts(lying, asks).decision.tools
    }
    assert decided == {"fs:read": "ask", "fs:write": "allow"}
    assert Verdicts((Policy(),), {}, DryRun()).mocked(lying) == {"fs:read", "fs:write"}
