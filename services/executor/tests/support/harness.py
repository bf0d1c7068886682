"""Handles commands with a bus, a pool and tools of the tests."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from uuid import UUID

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.port import Bus
from pml_common.bus.run_journal import read_run
from pml_common.contracts.base import Message
from pml_common.contracts.executor import (
    RunFinished,
    RunWorkflow,
    WorkflowParked,
)
from pml_common.contracts.trace import TraceEvent
from pml_executor.adapters.bus_journal import BusJournal
from pml_executor.application.run_dependencies import RunDependencies
from pml_executor.domain.limits import RunLimits
from pml_executor.entrypoints.bus.on_run_workflow import on_run_workflow
from pml_executor.ports import SandboxPool, Tools

FORGED = "forged"
"""A signature that `make_dependencies` rejects."""
_DELIVERED = set[UUID]()
"""The commands that were handled before."""


def make_dependencies(
    bus: Bus,
    pool: SandboxPool,
    tools: Tools,
    limits: RunLimits | None = None,
    *,
    flush_after_s: float = 3600.0,
) -> RunDependencies:
    """Build the dependencies of runs on a bus; by default nothing is stored that no one awaits."""
    return RunDependencies(
        pool=pool,
        open_journal=partial(BusJournal, bus, flush_after_s=flush_after_s),
        tools=tools,
        now=lambda: time.time() * 1000,
        limits=limits or RunLimits(),
        is_signed=lambda grant: grant.signature != FORGED,
    )


async def deliver(command: RunWorkflow, deps: RunDependencies) -> Sequence[Message]:
    """Handle a command as it is delivered: after its first time as a redelivery. Return the last
    append of the run's journal, alone."""
    redelivered = command.command_id in _DELIVERED
    _DELIVERED.add(command.command_id)
    assert await on_run_workflow(command, deps, redelivered=redelivered) == ()
    return [await last_append(deps, command)]


async def last_append(deps: RunDependencies, command: RunWorkflow) -> Message:
    """Return the last append of a run's journal."""
    journal = deps.open_journal(command)
    assert isinstance(journal, BusJournal)
    return (await journal.read()).appends[-1][1]


async def finish(command: RunWorkflow, deps: RunDependencies) -> RunFinished:
    """Handle a command until its run has ended, in bounded time."""
    async with asyncio.timeout(PATIENCE_S):
        (fact,) = await deliver(command, deps)
    assert isinstance(fact, RunFinished)
    return fact


async def parked(command: RunWorkflow, deps: RunDependencies) -> WorkflowParked:
    """Handle a command until its run is parked, in bounded time."""
    async with asyncio.timeout(PATIENCE_S):
        (fact,) = await deliver(command, deps)
    assert isinstance(fact, WorkflowParked), fact
    return fact


async def journal_of(bus: Bus, command: RunWorkflow | RunFinished) -> list[TraceEvent]:
    """Return the entries of a run's journal."""
    stored = await read_run(bus, command.scope, command.workflow_id, "signed")
    return list(stored.entries)
