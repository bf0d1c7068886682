"""What a program finds by name: nothing of the host."""

from collections.abc import Callable

import pytest

from pml_common.bus.memory import MemoryBus
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_executor.adapters.deno_pool import DenoPool
from pml_executor.adapters.memory_tools import MemoryTools
from pml_executor.handlers.on_run_workflow import Executor, on_run_workflow

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    "expression",
    [
        "typeof Deno",
        "typeof Worker",
        "typeof fetch",
        "typeof WebSocket",
        "typeof BroadcastChannel",
        "typeof process",
        "typeof Buffer",
        "typeof WebAssembly",
        "typeof SharedArrayBuffer",
        "typeof postMessage",
        "typeof close",
        "typeof caches",
        "typeof globalThis.self",
        "typeof ((globalThis as any)['De' + 'no'])",
        "typeof __pml.secret",
    ],
)
async def test_nothing_of_the_host_is_there_by_name(
    expression: str,
    make_command: Callable[..., RunWorkflow],
    make_executor: Callable[..., Executor],
    deno_pool: DenoPool,
) -> None:
    executor = make_executor(MemoryBus(), deno_pool, MemoryTools())
    (fact,) = await on_run_workflow(make_command(f"return {expression};"), executor)
    assert isinstance(fact, RunFinished)
    assert fact.result == "undefined"
