"""Real sandboxes, and runs in them."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pytest

from pml_common.bus.port import Bus
from pml_common.contracts.capability import InjectedCapability
from pml_common.contracts.executor import RunFinished
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.app import sandbox_command
from pml_executor.ports import SandboxPool
from pml_executor.settings import ExecutorSettings
from services.executor.tests.support.builders import ALL, ANSWERS, make_command
from services.executor.tests.support.harness import deliver, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools
from services.executor.tests.support.realms import realm_pool


# Realms are the default; the night runs the same in Workers of their own.
@pytest.fixture(
    scope="session", params=["realm", pytest.param("worker", marks=pytest.mark.nightly)]
)
async def deno_pool(request: pytest.FixtureRequest) -> AsyncGenerator[SandboxPool]:
    """A pool of real sandboxes, of one Worker for each program or with realms."""
    settings = ExecutorSettings()
    if request.param == "realm":
        async with realm_pool(settings) as pool:
            yield pool
        return
    command = await sandbox_command(settings.model_copy(update={"executor_pool_mode": "per_scope"}))
    async with DenoPool(
        partial(DenoSandbox.start, command), PoolSize(spares=1, lease_timeout_s=60)
    ) as pool:
        yield pool


@pytest.fixture
def run_nesting(
    deno_pool: SandboxPool,
) -> Callable[..., Awaitable[RunFinished]]:
    """Run a program that may call capabilities, in a real sandbox."""

    async def run(
        code: str,
        injected: Sequence[InjectedCapability] = ALL,
        tools: MemoryTools | None = None,
        bus: Bus | None = None,
        **command: Any,
    ) -> RunFinished:
        deps = make_dependencies(bus or MemoryBus(), deno_pool, tools or MemoryTools(ANSWERS))
        ready = make_command(code, injected=injected, **command)
        (fact,) = await deliver(ready, deps)
        assert isinstance(fact, RunFinished)
        return fact

    return run
