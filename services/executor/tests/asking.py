"""Runs that wait for a person, and the commands that follow once one has agreed."""

import asyncio
from uuid import uuid4

from pml_common.contracts.executor import RunWorkflow, WantedCall, WorkflowParked
from pml_common.contracts.grant import GrantedCall, GrantedNode, GrantedRest
from pml_executor.entrypoints.bus.on_run_workflow import RunDependencies, on_run_workflow


def bound(command: RunWorkflow, nodes: dict[str, GrantedNode]) -> RunWorkflow:
    """The same, its tools bound to these nodes: `nodes` are what the approver was shown."""
    tools = {node.tool: "hash" for node in nodes.values() if node.tool is not None}
    update = {"tools": command.grant.tools | tools, "bound": tuple(sorted(tools)), "nodes": nodes}
    return command.model_copy(update={"grant": command.grant.model_copy(update=update)})


async def parked(command: RunWorkflow, executor: RunDependencies) -> WorkflowParked:
    """Handles a command until its run waits, in bounded time."""
    async with asyncio.timeout(30):
        (fact,) = await on_run_workflow(command, executor)
    assert isinstance(fact, WorkflowParked), fact
    return fact


def waiting(fact: WorkflowParked) -> tuple[WantedCall, ...]:
    """Every call that a parked run waits at."""
    return fact.wanted, *fact.beside


def agreed(fact: WorkflowParked, before: RunWorkflow, *to: WantedCall) -> RunWorkflow:
    """What follows once a person has agreed to these calls; to all that wait if to none."""
    assert fact.grant_digest == before.grant.digest()
    calls = [
        GrantedCall(
            node_id=call.node_id,
            occurrence=call.occurrence,
            tool=call.tool,
            definition_hash=call.definition_hash,
            args_hash=call.args_hash,
        )
        for call in to or waiting(fact)
    ]
    grant = before.grant.model_copy(update={"calls": (*before.grant.calls, *calls)})
    return before.model_copy(update={"command_id": uuid4(), "grant": grant})


def agreed_to_rest(fact: WorkflowParked, before: RunWorkflow) -> RunWorkflow:
    """What follows once a person has agreed to all further calls of the first one's node."""
    assert fact.grant_digest == before.grant.digest()
    wanted = fact.wanted
    rest = GrantedRest(node_id=wanted.node_id, tool=wanted.tool, definition_hash="mails")
    grant = before.grant.model_copy(update={"rest": (*before.grant.rest, rest)})
    return before.model_copy(update={"command_id": uuid4(), "grant": grant})
