"""Programs that return a part that a tool's result does not have, in the real sandbox."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import JsonValue

from pml_common.contracts.executor import RunFinished
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import capability, make_command
from services.executor.tests.support.harness import finish, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools, answering

pytestmark = pytest.mark.integration

Run = Callable[..., Awaitable[RunFinished]]

READ = '(await «__pml.at("n1", »mcp.fs.read«)»({}))'
MARK = '«__pml.returned("n1", ["content", 0, "text"], "r.content", 1, 8, »'
CHAIN = f"{MARK}{READ}.content?.[0]?.text«)»"


@pytest.fixture
def run(deno_pool: SandboxPool) -> Run:
    async def run(code: str, result: JsonValue = "text", **given: Any) -> RunFinished:
        tools = MemoryTools({"fs:read": answering(result), "fs:write": answering({})})
        command = make_command(code, **given)
        return await finish(command, make_dependencies(MemoryBus(), deno_pool, tools))

    return run


async def test_a_missing_part_is_the_error_of_a_program_that_only_reads(run: Run) -> None:
    fact = await run(f"return {CHAIN};", read_only_tools=("fs:read",))
    assert fact.error is not None
    assert (fact.error.kind, fact.error.line, fact.error.column) == ("user_error", 1, 8)
    assert "the result of fs:read (n1) has no .content: it is text" in fact.error.message


async def test_what_a_program_threw_at_a_missing_part_is_explained(run: Run) -> None:
    fact = await run(f"return {MARK}{READ}\n  .content[0].text«)»;")
    assert fact.error is not None
    assert (fact.error.kind, fact.error.line) == ("user_error", 2)
    assert fact.error.message.startswith(
        "TypeError: Cannot read properties of undefined (reading '0'): the program returned "
        "r.content (line 1), and the result of fs:read (n1) has no .content: it is text."
    )


async def test_a_missing_part_is_null_and_a_notice_after_other_calls(run: Run) -> None:
    code = f'await «__pml.at("n2", »mcp.fs.write«)»({{}}); return {CHAIN};'
    fact = await run(code, read_only_tools=("fs:read",))
    assert (fact.error, fact.success, fact.result, fact.void) == (None, True, None, True)
    assert fact.notices[0].startswith("Do not repeat the program: its calls were made.")


@pytest.mark.parametrize(
    ("code", "result", "value"),
    [
        (f"return {CHAIN};", {"content": [{"text": "it"}]}, "it"),
        (f"return {CHAIN};", {"content": [{"text": None}]}, None),
        (f"return {CHAIN} ?? 3;", "text", 3),
        (f"const lost = {CHAIN}; return null;", "text", None),
        (f"const lost = {CHAIN}; return [lost];", "text", [None]),
    ],
)
async def test_any_other_value_is_the_result(
    run: Run, code: str, result: JsonValue, value: JsonValue
) -> None:
    fact = await run(code, result, read_only_tools=("fs:read",))
    assert (fact.error, fact.result, fact.void) == (None, value, False)


async def test_a_capability_gives_its_caller_null(run: Run) -> None:
    inner = capability("a:part", f"return {CHAIN};")
    code = 'return [await «__pml.at("n1", »capabilities.a_part«)»({})];'
    fact = await run(code, injected=[inner], read_only_tools=("fs:read",))
    assert (fact.error, fact.result, fact.void) == (None, [None], False)
