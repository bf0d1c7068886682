"""Handlers of messages, each called twice: a redelivery returns the same messages."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from uuid import uuid4

import pytest

from pml_common.bus.errors import Retryable
from pml_common.bus.port import Handled
from pml_common.contracts.base import Message
from pml_common.contracts.decision import Policy
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import ApprovalRequested, WorkflowFinished
from pml_common.contracts.scope import Scope
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.capability_names import CachedCapabilityNames
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.application.rulings import Rulings
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.entrypoints.bus.on_analysis_rejected import on_analysis_rejected
from pml_gateway.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from pml_gateway.entrypoints.bus.on_run_finished import on_runs_finished
from pml_gateway.entrypoints.bus.on_workflow_parked import on_workflow_parked
from services.gateway.tests.support.builders import (
    AT,
    READ,
    WRITE,
    analyzed,
    finished,
    rejected,
    workflow,
)
from services.gateway.tests.support.fake_stores import FakeWorkflows
from services.gateway.tests.support.fakes import FakeServices
from services.gateway.tests.support.harness import READY, FakeServers, workflow_service
from services.gateway.tests.support.parked_runs import parked

ALLOWED = Policy(otherwise="allow")
Handler = Callable[..., Awaitable[Sequence[Message]]]


async def stored(request: ExecuteRequest | None = None) -> tuple[Workflow, FakeWorkflows]:
    new, store = workflow(request), FakeWorkflows()
    await store.accept(new, (new.requested,))
    return new, store


async def twice(handle: Handler) -> Sequence[Message]:
    """Handle a message and its redelivery; return the messages that both return."""
    first = await handle()
    assert tuple(await handle()) == tuple(first)
    return first


def on(store: FakeWorkflows, handler: Handler) -> Handler:
    """Bind a handler to a store."""
    return partial(handler, workflows=workflow_service(store), now=lambda: AT)


def judging(
    store: FakeWorkflows,
    handler: Handler,
    servers: FakeServers | None = None,
    policy: Policy = ALLOWED,
) -> Handler:
    """Bind a handler that decides on tools under a policy, too."""
    tools = ToolRouter([servers or FakeServers()])

    def policy_of(scope: Scope) -> Policy:
        return policy

    return partial(on(store, handler), tools=tools, policy_of=policy_of)


def rulings(
    bus: MemoryBus, servers: FakeServers | None = None, policy: Policy = ALLOWED
) -> Rulings:
    tools = ToolRouter([servers or FakeServers()])
    return Rulings(tools, lambda scope: policy, CachedCapabilityNames(bus), lambda: AT)


def analysis_handler(
    store: FakeWorkflows,
    bus: MemoryBus,
    servers: FakeServers | None = None,
    policy: Policy = ALLOWED,
) -> Handler:
    decided = rulings(bus, servers, policy)
    return partial(on_execution_analyzed, workflows=workflow_service(store), rulings=decided)


async def test_an_analysis_that_answered_a_query_changes_nothing() -> None:
    new, store = await stored()
    analysis = analyzed(new).model_copy(update={"event_id": uuid4()})
    handle = analysis_handler(store, MemoryBus())
    assert await twice(partial(handle, analysis)) == ()
    assert await store.get(new.scope, new.workflow_id) == new


async def test_an_allowed_program_is_commanded_to_run_once() -> None:
    new, store = await stored()
    handle = analysis_handler(store, MemoryBus())
    (command,) = await twice(partial(handle, analyzed(new)))
    assert isinstance(command, RunWorkflow)
    assert command.repeatable_tools == command.read_only_tools == ("fs:read",)
    kept = await store.get(new.scope, new.workflow_id)
    assert kept is not None
    assert kept.state == "running"


async def test_a_grant_waits_for_the_first_listing_of_its_servers() -> None:
    new, store = await stored()
    servers = FakeServers(stands={"fs": replace(READY, state="connecting", tools=0)})
    handle = analysis_handler(store, MemoryBus(), servers)
    with pytest.raises(Retryable, match="MCP server fs is being connected"):
        await handle(analyzed(new))
    servers.stands = {"fs": READY}
    (command,) = await handle(analyzed(new))
    assert isinstance(command, RunWorkflow)


async def test_the_gateway_asks_about_tools_that_its_own_policy_does_not_allow() -> None:
    new, store = await stored()
    handle = analysis_handler(store, MemoryBus(), policy=Policy())
    (asked,) = await twice(partial(handle, analyzed(new, tools=(READ, WRITE))))
    assert isinstance(asked, ApprovalRequested)
    assert [tool.verdict for tool in asked.decision.tools] == ["allow", "ask"]


async def test_a_parked_run_is_asked_about_once_with_its_tools_as_they_are_listed() -> None:
    new, store = await stored()
    (command,) = await analysis_handler(store, MemoryBus())(analyzed(new))
    assert isinstance(command, RunWorkflow)
    servers = FakeServers(stands={"fs": replace(READY, state="connecting", tools=0)})
    handle, fact = judging(store, on_workflow_parked, servers), parked(command)
    with pytest.raises(Retryable, match="MCP server fs is being connected"):
        await handle(fact)
    servers.stands = {"fs": READY}
    (asked,) = await twice(partial(handle, fact))
    assert isinstance(asked, ApprovalRequested)
    kept = await store.get(new.scope, new.workflow_id)
    assert kept is not None
    assert kept.parked is not None
    assert kept.parked.wanted.definition_hash == WRITE.definition_hash


async def test_a_parked_run_whose_tool_no_server_lists_ends() -> None:
    new, store = await stored()
    (command,) = await analysis_handler(store, MemoryBus())(analyzed(new))
    assert isinstance(command, RunWorkflow)
    handle = judging(store, on_workflow_parked, FakeServers(listed={"fs": (READ,)}))
    (told,) = await twice(partial(handle, parked(command)))
    assert isinstance(told, WorkflowFinished)
    assert told.error is not None
    assert "no server lists it" in told.error.message


async def test_a_person_is_asked_once() -> None:
    new, store = await stored()
    handle = analysis_handler(store, MemoryBus())
    (asked,) = await twice(partial(handle, analyzed(new, "ask")))
    assert isinstance(asked, ApprovalRequested)


async def test_a_rejected_program_ends_once() -> None:
    new, store = await stored()
    handle = partial(
        on_analysis_rejected, workflows=workflow_service(store), rulings=rulings(MemoryBus())
    )
    (told,) = await twice(partial(handle, rejected(new)))
    assert isinstance(told, WorkflowFinished)


async def test_finished_runs_end_their_workflows_once_and_publish_nothing() -> None:
    new, store = await stored()
    await analysis_handler(store, MemoryBus())(analyzed(new))
    runs = [finished(new, result=1), finished(workflow(key="unknown"))]
    for _ in range(2):
        handled = await on_runs_finished(runs, workflows=workflow_service(store))
        assert handled == Handled()
    ended = await store.get(new.scope, new.workflow_id)
    assert ended is not None
    assert ended.run is not None
    assert (ended.state, ended.run.result, ended.run.entries) == ("succeeded", 1, ())


async def test_a_message_about_an_unknown_workflow_has_no_effects() -> None:
    _, store = await stored()
    stranger = workflow()
    assert await twice(partial(analysis_handler(store, MemoryBus()), analyzed(stranger))) == ()


async def test_the_end_of_a_run_that_did_not_begin_changes_nothing() -> None:
    new, store = await stored()
    await on_runs_finished([finished(new)], workflows=workflow_service(store))
    assert await store.get(new.scope, new.workflow_id) == new


async def test_a_name_is_reserved_later_while_the_registry_is_absent() -> None:
    new, store = await stored(ExecuteRequest(code="return 1;", name="fs:look"))
    bus = MemoryBus()
    handle = analysis_handler(store, bus)
    named = analyzed(new, name="fs:look")
    with pytest.raises(Retryable, match="reserve-name"):
        await handle(named)
    assert await store.get(new.scope, new.workflow_id) == new
    await FakeServices(bus).start()
    (command,) = await twice(partial(handle, named))
    assert isinstance(command, RunWorkflow)
    await bus.drain(1)
