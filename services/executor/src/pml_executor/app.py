"""Composition root of the executor: runs a command, writes its journal, publishes one event."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from pml_common.bus.delivery import deliveries
from pml_common.bus.port import Bus
from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import (
    CANCEL_RUN,
    EXECUTOR_ON_CANCEL_RUN,
    EXECUTOR_ON_RUN_WORKFLOW,
    EXECUTOR_ON_WORKFLOW_ACCEPTED,
)
from pml_common.contracts.executor import CancelRun, RunWorkflow
from pml_common.contracts.grant import Grant
from pml_common.health import Checks, fixed_detail
from pml_common.service import CannotStart, trusted_keys_of
from pml_common.signing import TrustedKeys
from pml_executor.adapters.bus_journal import BusJournal
from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.gateway_tools import GatewayTools
from pml_executor.adapters.walls import SandboxConfig, best_walls, unwalled_command
from pml_executor.application.active_runs import ActiveRuns
from pml_executor.application.run_dependencies import RunDependencies
from pml_executor.domain.realms import Realms
from pml_executor.domain.walls import ADVICE
from pml_executor.entrypoints.bus.on_cancel_run import on_cancel_run
from pml_executor.entrypoints.bus.on_run_workflow import on_run_workflow
from pml_executor.settings import ExecutorSettings

log = logging.getLogger(__name__)


async def sandbox_command(settings: ExecutorSettings) -> DenoCommand:
    """Return the command that starts a sandbox process on this machine. Raises CannotStart."""
    config = _sandbox_config(settings)
    if settings.executor_walls == "off":
        return await unwalled_command(config)
    command = await best_walls(config)
    if settings.executor_walls == "required" and not command.walls.closed:
        raise CannotStart(f"sandboxes have no walls: {command.walls}; {ADVICE}")
    return command


def _sandbox_config(settings: ExecutorSettings) -> SandboxConfig:
    return SandboxConfig(
        deno=Path(settings.executor_deno).resolve(),
        runtime=settings.executor_runtime.resolve(),
        max_message_bytes=settings.limits.max_message_bytes,
        max_heap_mib=settings.executor_max_heap_mib,
        resources=settings.resources,
        realms=Realms() if settings.executor_pool_mode == "per_scope_realm" else None,
    )


def is_signed(trusted: TrustedKeys, grant: Grant) -> bool:
    """Whether the grant carries a gateway's valid signature."""
    return trusted.verify("gateway", grant.kid, grant.signed_bytes(), grant.signature)


@asynccontextmanager
async def serve(settings: ExecutorSettings, bus: Bus) -> AsyncGenerator[Checks]:
    """Handle run commands until the context exits."""
    size = PoolSize(
        spares=settings.executor_pool_size,
        max_processes=settings.executor_max_processes,
        lease_timeout_s=settings.executor_sandbox_patience_s,
        idle_s=settings.executor_pool_idle_s,
    )
    most = size.max_processes
    command = await sandbox_command(settings)
    log.log(logging.INFO if command.walls.closed else logging.WARNING, "walls: %s", command.walls)
    async with DenoPool(partial(DenoSandbox.start, command), size, command.may_use_realms) as pool:
        tools = GatewayTools(bus, bus.outages)
        deps = RunDependencies(
            pool=pool,
            open_journal=partial(BusJournal, bus, flush_after_s=settings.executor_journal_flush_s),
            tools=tools,
            now=lambda: bus.now().timestamp() * 1000,
            limits=settings.limits,
            is_signed=partial(is_signed, trusted_keys_of(settings)),
            outages=bus.outages,
        )

        room = asyncio.Semaphore(most)  # two consumers, one process for each run

        async def run(command: RunWorkflow) -> Sequence[Message]:
            async with room:
                return await on_run_workflow(command, deps, redelivered=deliveries() != 1)

        async def begin(accepted: WorkflowAccepted) -> Sequence[Message]:
            return await running.run(accepted.run)

        async def cancel(command: CancelRun) -> Sequence[Message]:
            await running.stopped(command)
            return await on_cancel_run(command, deps)

        running = ActiveRuns(run)
        await bus.listen(CANCEL_RUN, running.stop)
        await bus.consume(replace(EXECUTOR_ON_WORKFLOW_ACCEPTED, max_in_flight=most), begin)
        await bus.consume(replace(EXECUTOR_ON_RUN_WORKFLOW, max_in_flight=most), running.run)
        await bus.consume(EXECUTOR_ON_CANCEL_RUN, cancel)
        walls = fixed_detail(str(command.walls))
        yield {"sandbox": pool.check, "gateways": tools.check, "walls": walls}
