"""Rulings on calls: the gateway enforces the grant of the run."""

from dataclasses import replace
from uuid import uuid4

import pytest

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import ArgumentRule, Policy, PolicyRule, Verdict
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import CancelRun, RunWorkflow
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.grant import GrantedCall
from pml_common.contracts.structure import ReferenceArgument, StaticStructure, TaskNode
from pml_common.contracts.tool import JsonObject, args_hash
from pml_gateway.application.run_cache import RunCache
from pml_gateway.domain.tool_calls.call_ruling import MOST_KEPT, Listed, direct_ruling, run_of
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import (
    ELSEWHERE,
    READ,
    WRITE,
    analyzed,
    finished,
    workflow,
)
from services.gateway.tests.support.calling import (
    RunningWorkflows,
    call,
    granted,
    keep,
    running,
    tool_calls,
    with_grant,
)
from services.gateway.tests.support.fake_stores import FakeLedger
from services.gateway.tests.support.harness import FakeServers

EVIL: JsonObject = {"path": "/evil"}
DENY = Policy(rules=(PolicyRule(pattern="fs:write", verdict="deny"),))
ASK_ALL = Policy(read_only="ask")


async def outcome(
    asked: CallTool, policy: Policy | None = None, servers: FakeServers | None = None
) -> ToolOutcome:
    """Return the outcome of a call at a gateway that has just started."""
    servers = servers or FakeServers()
    told = await tool_calls(servers, policy=lambda: policy or Policy()).on_call_tool(asked)
    assert bool(servers.made) == (told.status == "ok")
    return told


async def test_what_was_shown_is_called() -> None:
    assert (await outcome(call(workflow(), WRITE))).status == "ok"
    assert (await outcome(call(workflow(), READ, EVIL))).status == "ok"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"args": EVIL}, "path was to be another value"),
        ({"args": {"path": "/notes.txt", "mode": 7}}, "mode was not to be given"),
        ({"node_id": "n1"}, "was not seen"),
        ({"node_id": "dyn:fs:write"}, "was not seen"),
    ],
)
async def test_another_call_is_not_made_and_a_person_may_be_asked(
    change: dict[str, object], why: str
) -> None:
    told = await outcome(call(workflow(), WRITE).model_copy(update=change))
    assert (told.status, told.result) == ("ask", None)
    assert why in (told.message or "")


async def test_a_call_outside_loops_is_made_once() -> None:
    run = running(workflow())
    node = granted(run).nodes["n2"].model_copy(update={"repeats": False})
    once = with_grant(run, nodes={"n2": node})
    servers = FakeServers()
    assert (await outcome(call(once, WRITE), servers=servers)).status == "ok"
    told = await outcome(call(once, WRITE, occurrence=1))
    assert "to be made once" in (told.message or "")


@pytest.mark.parametrize(
    "change",
    [
        {"grant_digest": "0" * 64},
        {"workflow_id": uuid4()},
        {"scope": ELSEWHERE},
    ],
)
async def test_under_another_grant_nothing_is_called(change: dict[str, object]) -> None:
    told = await outcome(call(workflow(), WRITE).model_copy(update=change))
    assert told.status == "refused"
    assert "not under the grant that the call names" in (told.message or "")


async def test_a_run_that_does_not_go_on_calls_nothing() -> None:
    run = running(workflow())
    asked = call(run, WRITE)
    for ended in (
        replace(run, state="succeeded"),
        replace(run, state="awaiting_approval"),
        replace(run, grant=None),
    ):
        keep(ended)
        assert (await outcome(asked)).status == "refused"


async def test_a_run_that_is_being_cancelled_calls_nothing_and_is_not_told_that_it_was_denied() -> (
    None
):
    run = running(workflow())
    asked, servers = call(run, WRITE), FakeServers()
    keep(replace(run, error=WorkflowError(kind="cancelled", message="no more")))
    with pytest.raises(QueryFailed, match="the run is being ended: no more") as failure:
        await tool_calls(servers).on_call_tool(asked)
    assert (failure.value.code, servers.made) == ("unavailable", [])


async def test_a_run_is_forgotten_with_its_end_and_its_earlier_grant_with_the_next() -> None:
    servers, run = FakeServers(), running(workflow())
    asked = call(run)
    runs = RunCache(RunningWorkflows())
    assert await runs.find(asked) is not None
    keep(replace(run, state="succeeded"))
    assert await runs.find(asked) is not None
    await runs.on_end(finished(run))
    assert await runs.find(asked) is None
    later = with_grant(run, approved_by="ann")
    assert await runs.find(asked) is None
    assert await runs.find(call(later)) is not None
    command = RunWorkflow.model_construct(scope=run.scope, workflow_id=run.workflow_id)
    cancel = CancelRun.model_construct(scope=run.scope, workflow_id=run.workflow_id, run=command)
    await runs.on_end(cancel)
    keep(replace(later, state="failed"))
    assert await runs.find(call(later)) is None
    assert servers.made == []


async def test_only_so_many_runs_are_kept() -> None:
    runs, first = RunCache(RunningWorkflows()), running(workflow())
    for run in (first, *(running(workflow()) for _ in range(256))):
        runs.put(run)
    keep(replace(first, state="succeeded"))
    assert await runs.find(call(first)) is None


async def test_a_policy_that_became_stricter_applies_and_one_that_became_looser_does_not() -> None:
    denied = await outcome(call(workflow(), WRITE), DENY)
    assert denied.status == "refused"
    assert "the policy forbids this call of fs:write" in (denied.message or "")
    asked = await outcome(call(workflow(), READ), ASK_ALL)
    assert asked.status == "ask"
    assert "fs:read was not approved before the run" in (asked.message or "")
    other = await outcome(call(workflow(), WRITE, EVIL), Policy(otherwise="allow"))
    assert other.status == "ask"


async def test_an_outcome_that_is_known_is_told_whatever_the_policy_says_now() -> None:
    servers, ledger, asked = FakeServers(), FakeLedger(), call(workflow(), WRITE)
    first = await tool_calls(servers, ledger).on_call_tool(asked)
    again = tool_calls(servers, ledger, policy=lambda: DENY)
    assert await again.on_call_tool(asked) == first
    assert servers.made == ["fs:write"]


async def test_a_person_may_have_allowed_the_very_call() -> None:
    run = running(workflow())
    very = GrantedCall(
        node_id="n2",
        occurrence=0,
        tool="fs:write",
        definition_hash=WRITE.definition_hash,
        args_hash=args_hash(EVIL),
    )
    allowed = with_grant(run, calls=(very,), bound=(), tools={})
    assert (await outcome(call(allowed, WRITE, EVIL))).status == "ok"
    assert (await outcome(call(allowed, WRITE))).status == "ask"
    stale = very.model_copy(update={"definition_hash": "0" * 64})
    changed = with_grant(run, calls=(stale,), tools={})
    assert "has changed" in ((await outcome(call(changed, WRITE, EVIL))).message or "")


async def test_a_tool_that_was_not_granted_is_asked_about_though_the_policy_allows_it() -> None:
    run = with_grant(running(workflow()), tools={})
    told = await outcome(call(run, READ))
    assert (told.status, told.result) == ("ask", None)
    assert "was not seen when the program was analysed" in (told.message or "")


async def test_a_tool_that_nobody_lists_is_refused() -> None:
    told = await outcome(call(workflow(), WRITE), servers=FakeServers(listed={}))
    assert "its server does not list it" in (told.message or "")


async def test_a_rule_on_arguments_gives_standing_consent() -> None:
    under = ArgumentRule(name="path", under="/work")
    policy = Policy(rules=(PolicyRule(pattern="fs:write", arguments=(under,), verdict="allow"),))
    run = running(workflow())
    requested = run.requested.model_copy(update={"policy": policy})
    standing = keep(replace(run, requested=requested))
    assert (await outcome(call(standing, WRITE, {"path": "/work/a"}), policy)).status == "ok"
    assert (await outcome(call(standing, WRITE, {"path": "/work/../a"}), policy)).status == "ask"


def reading_first(of: Workflow) -> ExecutionAnalyzed:
    """Build the analysis of a program that writes to a path it read."""
    analysis = analyzed(of, "ask", (READ, WRITE))
    where = ReferenceArgument(expression="a.path", node_id="n1", path=("path",))
    nodes = (
        analysis.structure.nodes[0],
        TaskNode(id="n2", tool="fs:write", line=2, column=1, arguments={"path": where}),
    )
    return analysis.model_copy(update={"structure": StaticStructure(nodes=nodes)})


async def test_references_are_compared_with_what_this_gateway_heard_or_the_ledger_holds() -> None:
    of = workflow()
    run, servers, ledger = running(of, reading_first(of)), FakeServers(), FakeLedger()
    calls = tool_calls(servers, ledger)
    assert (await calls.on_call_tool(call(run, WRITE))).status == "ask"
    claimed = await calls.on_call_tool(call(run, READ, EVIL))
    assert "fs:read is called with other arguments" in (claimed.message or "")
    assert (await calls.on_call_tool(call(run, READ))).status == "ok"
    assert (await calls.on_call_tool(call(run, WRITE, EVIL))).status == "ask"
    assert (await calls.on_call_tool(call(run, WRITE))).status == "ok"
    another = tool_calls(servers, ledger)
    again = call(run, WRITE, occurrence=1)
    assert (await another.on_call_tool(again)).status == "ok"
    assert (await another.on_call_tool(call(run, WRITE, EVIL, occurrence=2))).status == "ask"
    assert servers.made == ["fs:read", "fs:write", "fs:write"]


def test_results_are_kept_as_far_as_they_are_compared_and_fit() -> None:
    run = run_of(running(workflow()))
    assert run is not None
    run.keep("n1", "a", MOST_KEPT - 1)
    run.keep("n1", "too much", 2)
    assert run.results == {"n1": ["a"]}
    unbound = run_of(with_grant(running(workflow()), bound=()))
    assert unbound is not None
    unbound.keep("n1", "a", 1)
    assert unbound.results == {}


@pytest.mark.parametrize(
    ("tool", "first", "status"),
    [
        (READ, None, "ok"),
        (READ, "unknown", "ok"),
        (READ, "ok", "refused"),
        (WRITE, "unknown", "refused"),
    ],
)
async def test_only_a_repeatable_call_of_unknown_end_is_made_again(
    tool: object, first: str | None, status: Verdict
) -> None:
    asked = call(workflow(), READ if tool is READ else WRITE)
    servers, ledger = FakeServers(), FakeLedger()
    calls = tool_calls(servers, ledger)
    if first is not None:
        ended = ToolOutcome.model_validate({"status": first, "message": "so it was"})
        servers.outcomes = [ended, ended]
        await calls.on_call_tool(asked)
    again = asked.model_copy(update={"attempt": "again"})
    assert again.idempotency_key != asked.idempotency_key
    assert (await calls.on_call_tool(again)).status == status


@pytest.mark.parametrize(
    ("policy", "listed", "why"),
    [
        (DENY, Listed(WRITE, "h"), "the policy does not allow this call of fs:write now"),
        (ASK_ALL, Listed(WRITE, "h"), "the policy does not allow this call of fs:write now"),
        (ASK_ALL, Listed(None, None), "its server does not list it"),
        (ASK_ALL, Listed(None, None, "fs:write is in quarantine"), "fs:write is in quarantine"),
    ],
)
def test_a_direct_call_is_refused_that_is_not_allowed_any_more(
    policy: Policy, listed: Listed, why: str
) -> None:
    found = direct_ruling(call(workflow(), WRITE), listed, policy)
    assert found is not None
    assert found.status == "refused"
    assert why in found.why


def test_a_direct_call_is_made_that_is_allowed_still() -> None:
    assert direct_ruling(call(workflow(), READ), Listed(READ, "h"), Policy()) is None
