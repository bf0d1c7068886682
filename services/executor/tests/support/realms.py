"""Pools whose programs run in realms from the first one on."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.process_starter import SandboxProcess
from pml_executor.app import sandbox_command
from pml_executor.domain.protocol import Program, Returned
from pml_executor.ports import SandboxPool
from pml_executor.settings import ExecutorSettings

FIRST = Program(code="return 0;", args={}, seed="0" * 32, now=0)


class RealmPool(SandboxPool):
    """A pool that gives every run of an owner a realm, whatever its program: a new process's first
    run, which has a Worker, is one of its own. A program that cannot run in a realm has a Worker at
    the next lease; `workers` counts these."""

    def __init__(self, pool: DenoPool) -> None:
        self._pool = pool
        self._needs_worker = False
        self.workers = 0

    @override
    @asynccontextmanager
    async def lease(
        self, owner: Scope | None, *, realm: bool = False
    ) -> AsyncGenerator[SandboxProcess]:
        if self._needs_worker:
            self._needs_worker = False
            self.workers += 1
            async with self._pool.lease(owner) as sandbox:
                yield sandbox
            return
        while True:
            async with self._pool.lease(owner, realm=True) as sandbox:
                if owner is None:
                    self.workers += 1
                    yield sandbox
                    return
                if isinstance(sandbox, DenoSandbox) and sandbox.in_realm:
                    yield sandbox
                    self._needs_worker = sandbox.needs_worker
                    return
                await sandbox.run(FIRST)
                assert isinstance(await sandbox.receive(), Returned)
                sandbox.finish()


@asynccontextmanager
async def realm_pool(settings: ExecutorSettings) -> AsyncGenerator[RealmPool]:
    """Run a pool with these settings, in realm mode."""
    mode = settings.model_copy(update={"executor_pool_mode": "per_scope_realm"})
    command = await sandbox_command(mode)
    size = PoolSize(spares=1, lease_timeout_s=60)
    start = partial(DenoSandbox.start, command)
    async with DenoPool(start, size, command.may_use_realms) as pool:
        yield RealmPool(pool)


def skip_in_realms(pool: SandboxPool) -> None:
    """Skip a test of what is sent before an endless loop: of a realm it would be sent after it."""
    if isinstance(pool, RealmPool):
        pytest.skip("a realm sends what a task has written when the task is over")
