"""Commands, and executors to handle them."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar
from uuid import uuid4

import pytest

from pml_common.binding.canonical import sha256_of_text
from pml_common.bus.identity import all_services_keys
from pml_common.bus.memory import MemoryBus
from pml_common.bus.port import Bus
from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityIdentity, InjectedCapability
from pml_common.contracts.catalog import TRACE_RECORDED
from pml_common.contracts.executor import RunFinished, RunWorkflow, TraceRecorded
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.grant import Grant
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, args_hash
from pml_common.contracts.trace import TraceEvent
from pml_executor.adapters.bus_journal import BusJournal
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.memory_tools import MemoryTools
from pml_executor.app import sandbox_command
from pml_executor.domain.limits import RunLimits
from pml_executor.entrypoints.bus.on_run_workflow import RunDependencies, on_run_workflow
from pml_executor.ports import SandboxPool, Tools
from pml_executor.settings import ExecutorSettings
from services.executor.tests.marked import instrumented
from services.executor.tests.nested import ALL, ANSWERS

T = TypeVar("T")
FORGED = "forged"
KEY = next(key for key in all_services_keys() if key.service == "gateway")
TOOLS = ("fs:stat", "fs:read", "fs:create", "fs:write", "api:a", "api:b", "api:c")


def signed(grant: Grant) -> Grant:
    """The grant as a gateway of the tests signs it."""
    named = grant.model_copy(update={"kid": KEY.kid})
    return named.model_copy(update={"signature": KEY.sign(named.signed_bytes())})


@pytest.fixture
def make_command() -> Callable[..., RunWorkflow]:
    """Makes a new workflow that runs some code, its «insertions» marked or not."""

    def make(
        code: str,
        args: JsonObject | None = None,
        *,
        tools: Sequence[str] = TOOLS,
        injected: Sequence[InjectedCapability] = (),
        timeout_s: float = 20.0,
        repeatable_tools: Sequence[str] = (),
    ) -> RunWorkflow:
        scope, workflow = Scope(org="acme", project="webapp"), uuid4()
        text, insertions = instrumented(code)
        return RunWorkflow(
            command_id=ids.effect_id(workflow, "run-workflow"),
            scope=scope,
            workflow_id=workflow,
            principal="agent:test",
            capability=CapabilityIdentity(
                capability_id=ids.capability_id(scope, "c0de"), code_hash="c0de"
            ),
            instrumented=text,
            insertions=insertions,
            injected=tuple(injected),
            args=args or {},
            grant=signed(
                Grant(
                    scope=scope,
                    workflow_id=workflow,
                    code_hash="c0de",
                    text_hash=sha256_of_text(text),
                    args_hash=args_hash(args or {}),
                    tools=dict.fromkeys(tools, "hash"),
                    capabilities={str(one.capability_id): one.code_hash for one in injected},
                    texts={
                        str(one.capability_id): sha256_of_text(one.instrumented) for one in injected
                    },
                    policy_revision="p",
                    expires_at=datetime.now(UTC) + timedelta(hours=1),
                )
            ),
            repeatable_tools=tuple(repeatable_tools),
            timeout_s=timeout_s,
        )

    return make


@pytest.fixture
def make_executor() -> Callable[..., RunDependencies]:
    """Makes what handles runs, on a bus."""

    def make(
        bus: Bus, pool: SandboxPool, tools: Tools, limits: RunLimits | None = None
    ) -> RunDependencies:
        return RunDependencies(
            pool=pool,
            open_journal=partial(BusJournal, bus),
            tools=tools,
            now=lambda: time.time() * 1000,
            limits=limits or RunLimits(),
            is_signed=lambda grant: grant.signature != FORGED,
        )

    return make


@pytest.fixture
def finish() -> Callable[[RunWorkflow, RunDependencies], Awaitable[RunFinished]]:
    """Handles a command to its end, in bounded time."""

    async def handle(command: RunWorkflow, executor: RunDependencies) -> RunFinished:
        async with asyncio.timeout(30):
            (fact,) = await on_run_workflow(command, executor)
        assert isinstance(fact, RunFinished)
        return fact

    return handle


@pytest.fixture
def journal_of() -> Callable[[Bus, RunWorkflow | RunFinished], Awaitable[list[TraceEvent]]]:
    """Reads the entries of a run's journal."""

    async def read(bus: Bus, command: RunWorkflow | RunFinished) -> list[TraceEvent]:
        entity = str(command.workflow_id)
        records = await bus.history(command.scope, entity, of=TRACE_RECORDED)
        messages = [record.message for record in records]
        return [
            entry
            for message in messages
            if isinstance(message, TraceRecorded)
            for entry in message.entries
        ]

    return read


@pytest.fixture(scope="session")
async def deno_pool() -> AsyncGenerator[DenoPool]:
    """Real sandboxes, warm."""
    settings = ExecutorSettings()
    command = await sandbox_command(settings)
    async with DenoPool(partial(DenoSandbox.start, command), PoolSize(spares=1)) as pool:
        yield pool


@pytest.fixture
def run_nesting(
    make_command: Callable[..., RunWorkflow],
    make_executor: Callable[..., RunDependencies],
    deno_pool: DenoPool,
) -> Callable[..., Awaitable[RunFinished]]:
    """Runs a program that may call capabilities, in a real sandbox."""

    async def run(
        code: str,
        injected: Sequence[InjectedCapability] = ALL,
        tools: MemoryTools | None = None,
        bus: Bus | None = None,
        **command: object,
    ) -> RunFinished:
        executor = make_executor(bus or MemoryBus(), deno_pool, tools or MemoryTools(ANSWERS))
        ready = make_command(code, injected=injected, **command)
        (fact,) = await on_run_workflow(ready, executor)
        assert isinstance(fact, RunFinished)
        return fact

    return run


class _Life:
    """Counts an executor's effects and ends it at one of them, before it or just after."""

    def __init__(self, effects: int, after: bool) -> None:
        self.left = effects
        self._after = after

    async def effect(self, do: Callable[[], Awaitable[T]]) -> T:
        self.left -= 1
        if self.left > 0:
            return await do()
        if self.left == 0 and self._after:
            await do()
        raise RuntimeError("the executor died here")


class _MortalBus(MemoryBus):
    def __init__(self, bus: MemoryBus, life: _Life) -> None:
        super().__init__(bus.broker)
        self._life = life

    async def publish(self, message: Message, *, expected_last: int | None = None) -> int:
        publish = partial(super().publish, message, expected_last=expected_last)
        return await self._life.effect(publish)


class _MortalTools(MemoryTools):
    def __init__(self, tools: MemoryTools, life: _Life) -> None:
        super().__init__()
        self._shared = tools
        self._life = life

    async def call(self, query: CallTool) -> ToolOutcome:
        return await self._life.effect(partial(self._shared.call, query))


@pytest.fixture
def short_life() -> Callable[
    [MemoryBus, MemoryTools, int, bool], tuple[Bus, Tools, Callable[[], bool]]
]:
    """Bus and tools of an executor that dies (RuntimeError) at its n-th append or call, before it
    (False) or just after (True); and whether it did."""

    def live(
        bus: MemoryBus, tools: MemoryTools, effects: int, after: bool
    ) -> tuple[Bus, Tools, Callable[[], bool]]:
        life = _Life(effects, after)
        return _MortalBus(bus, life), _MortalTools(tools, life), lambda: life.left <= 0

    return live
