"""Programs that end before what they began: an error, whatever the order in which they are run."""

from collections.abc import Awaitable, Callable

import pytest

from pml_common.contracts.capability import InjectedCapability
from pml_common.contracts.executor import RunFinished
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import capability, make_command
from services.executor.tests.support.harness import finish, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools, answering

pytestmark = pytest.mark.integration

Run = Callable[..., Awaitable[RunFinished]]

TOOLS = MemoryTools({"fs:read": answering("text")})
READ = '«__pml.at("n1", »mcp.fs.read«)»({})'
MAIN = f"""async function main() {{
  const all = await Promise.all([{READ}]);
  await «__pml.at("n2", »mcp.fs.write«)»({{ all }});
  return all;
}}
"""
CARELESS = capability("a:careless", f"{MAIN}«__pml.dropped(6, 1, »main()«)»;")


@pytest.fixture
def run(deno_pool: SandboxPool) -> Run:
    async def run(code: str, *injected: InjectedCapability) -> RunFinished:
        command = make_command(code, injected=injected)
        return await finish(command, make_dependencies(MemoryBus(), deno_pool, TOOLS))

    return run


LEFT = {
    "main without await": (f"{MAIN}«__pml.dropped(6, 1, »main()«)»;", "line 6, column 1 is not"),
    "with a handler": (
        f"{MAIN}«__pml.dropped(6, 1, »main().catch(() => 1)«)»; return 1;",
        "line 6, column 1 is not awaited; not answered yet: fs:read (n1)",
    ),
    "after some microtasks": (
        f"""«__pml.dropped(1, 1, »(async () => {{
          for (let i = 0; i < 30; i++) await null;
          await {READ}; }})()«)»;""",
        "fs:read (n1)",
    ),
    "a timer": (
        "«__pml.dropped(1, 1, »(async () => { await new Promise((r) => setTimeout(r, 9)); })()«)»;",
        "line 1, column 1 is not awaited",
    ),
    "a call": (f"{READ}; return 1;", "not answered yet: fs:read (n1)"),
    "calls of forEach": (
        f"[1, 2].forEach(async (x) => {{ await {READ}; }}); return 1;",
        "not answered yet: fs:read (n1))",
    ),
}


@pytest.mark.parametrize(("code", "words"), LEFT.values(), ids=LEFT)
async def test_what_a_program_leaves_under_way_is_its_error(
    run: Run, code: str, words: str
) -> None:
    fact = await run(code)
    assert (fact.success, fact.result) == (False, None)
    assert fact.error is not None
    assert fact.error.kind == "user_error"
    assert "the program ended while it was still at work" in fact.error.message
    assert "await main()" in fact.error.message
    assert words in fact.error.message
    if "dropped" in code:
        assert fact.error.line == (6 if "async function main" in code else 1)


COMPLETE = {
    "awaited": f"{MAIN}return await main();",
    "awaited later": f"const read = {READ}; const x = 1; return await read;",
    "answered before the end": f"""«__pml.dropped(1, 1, »(async () => {{ await {READ}; }})()«)»;
        await «__pml.at("n2", »mcp.fs.write«)»({{}}); await null; await null; return 1;""",
    "of microtasks alone": "«__pml.dropped(1, 1, »(async () => { await null; })()«)»; return 1;",
    "the loser of a race": f"return await Promise.race([{READ}, 1]);",
    "beside one that failed": f"""try {{ await Promise.all([{READ}, Promise.reject(1)]); }}
        catch {{ return 1; }}""",
    "no promise": "«__pml.dropped(1, 1, »(() => 1)()«)»; return 1;",
}


@pytest.mark.parametrize("code", COMPLETE.values(), ids=COMPLETE)
async def test_a_program_that_waits_for_what_it_began_succeeds(run: Run, code: str) -> None:
    fact = await run(code)
    assert fact.error is None
    assert fact.success


async def test_what_a_capability_leaves_is_named_with_it(run: Run) -> None:
    fact = await run('return await «__pml.at("n1", »capabilities.a_careless«)»({});', CARELESS)
    assert fact.error is not None
    assert "a:careless, line 6, column 1 is not awaited" in fact.error.message
    assert (fact.error.line, fact.error.column) == (None, None)


async def test_an_error_of_a_dropped_promise_is_still_the_programs(run: Run) -> None:
    fact = await run(
        """«__pml.dropped(1, 1, »(async () => { throw new Error("mine"); })()«)»;
        await new Promise((r) => setTimeout(r, 50)); return 1;"""
    )
    assert fact.error is not None
    assert fact.error.message == "mine"
