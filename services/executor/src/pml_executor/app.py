"""The executor: one command in, a journal and one fact out."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from pml_common.bus.port import Bus
from pml_common.contracts.catalog import EXECUTOR_ON_RUN_WORKFLOW
from pml_common.health import Checks
from pml_executor.adapters.bus_journal import BusJournal
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.deno_sandbox import DenoCommand, DenoSandbox
from pml_executor.adapters.gateway_tools import GatewayTools
from pml_executor.adapters.leash import find_leash
from pml_executor.domain.walls import sandbox_argv
from pml_executor.handlers.on_run_workflow import Executor, on_run_workflow
from pml_executor.settings import ExecutorSettings


async def sandbox_command(settings: ExecutorSettings) -> DenoCommand:
    """How this machine starts a sandbox process."""
    argv = sandbox_argv(
        settings.executor_deno,
        str(settings.executor_runtime / "host.ts"),
        max_heap_mib=settings.executor_max_heap_mib,
        leash=await find_leash(),
    )
    return DenoCommand(argv, settings.limits.max_message_bytes, settings.executor_max_heap_mib)


@asynccontextmanager
async def serve(settings: ExecutorSettings, bus: Bus) -> AsyncGenerator[Checks]:
    """Take runs until the block ends."""
    size = PoolSize(
        spares=settings.executor_pool_size,
        most=settings.executor_max_processes,
        patience_s=settings.executor_sandbox_patience_s,
    )
    command = await sandbox_command(settings)
    async with DenoPool(partial(DenoSandbox.start, command), size) as pool:
        executor = Executor(
            pool=pool,
            open_journal=partial(BusJournal, bus),
            tools=GatewayTools(bus),
            now=lambda: time.time() * 1000,
            limits=settings.limits,
        )
        await bus.consume(EXECUTOR_ON_RUN_WORKFLOW, partial(on_run_workflow, executor=executor))
        yield {"sandbox": pool.check}
