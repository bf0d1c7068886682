"""Names that a program can access: none of the host's."""

import asyncio
import json
from asyncio.subprocess import PIPE

import pytest
from deno import find_deno_bin

from pml_common.contracts.executor import RunFinished
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.harness import deliver, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools

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
        "typeof (new Date() as any).toTemporalInstant",
    ],
)
async def test_nothing_of_the_host_is_there_by_name(
    expression: str,
    deno_pool: SandboxPool,
) -> None:
    deps = make_dependencies(MemoryBus(), deno_pool, MemoryTools())
    (fact,) = await deliver(make_command(f"return {expression};"), deps)
    assert isinstance(fact, RunFinished)
    assert fact.result == "undefined"


async def test_no_module_of_node_is_there(
    deno_pool: SandboxPool,
) -> None:
    names = await _node_modules()
    assert len(names) > 60
    code = f"""const found: string[] = [];
for (const name of {json.dumps(names)}) {{
  await import(name).then(() => found.push(name), (error: Error) => {{
    const refused = /no modules|callback was not specified/.test(error.message);
    if (!refused) found.push(`${{name}}: ${{error.message}}`);
  }});
}}
return found;"""
    deps = make_dependencies(MemoryBus(), deno_pool, MemoryTools())
    (fact,) = await deliver(make_command(code), deps)
    assert isinstance(fact, RunFinished)
    assert fact.result == []


async def _node_modules() -> list[str]:
    """Return the names of all Node modules in this version of Deno."""
    tell = "import m from 'node:module'; console.log(JSON.stringify(m.builtinModules))"
    process = await asyncio.create_subprocess_exec(find_deno_bin(), "eval", tell, stdout=PIPE)
    out, _ = await process.communicate()
    return ["node:" + name.removeprefix("node:") for name in json.loads(out)]
