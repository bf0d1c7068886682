"""Values that JSON cannot say: as results, and as arguments of calls."""

from typing import Any

import pytest
from pydantic import JsonValue

from pml_common.contracts.executor import RunFinished
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.harness import deliver, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools

pytestmark = pytest.mark.integration


async def run(pool: SandboxPool, code: str, tools: MemoryTools | None = None) -> RunFinished:
    deps = make_dependencies(MemoryBus(), pool, tools or MemoryTools())
    (fact,) = await deliver(make_command(code, tools=("fs:write",)), deps)
    assert isinstance(fact, RunFinished)
    return fact


@pytest.mark.parametrize(
    ("code", "result", "notices"),
    [
        (
            "return { a: NaN, b: Infinity, c: -0 };",
            {"a": None, "b": None, "c": 0},
            ("result.a was NaN: it became null", "result.b was Infinity: it became null"),
        ),
        ("return { toJSON() { return { euro: 1.5 }; } };", {"euro": 1.5}, ()),
        ("return [/a+/g];", ["/a+/g"], ()),
        ("return () => 1;", None, ("result was a function: it became null",)),
    ],
)
async def test_what_a_result_loses_is_noted(
    deno_pool: SandboxPool, code: str, result: JsonValue, notices: tuple[str, ...]
) -> None:
    fact = await run(deno_pool, code)
    assert (fact.error, fact.result, fact.notices) == (None, result, notices)


@pytest.mark.parametrize("value", ["Promise.resolve(1)", "(async () => 1)()"])
async def test_a_promise_in_a_result_is_refused_by_its_path(
    deno_pool: SandboxPool, value: str
) -> None:
    fact = await run(deno_pool, f"return {{ a: [{value}] }};")
    assert fact.error is not None
    assert fact.error.kind == "user_error"
    assert fact.error.message == "TypeError: result.a[0] is a promise: await it"


CALL = 'return await __pml.at("n1", mcp.fs.write)({ x: VALUE });'


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("JSON.rawJSON('12')", 12),
        ("new (class extends Date { toJSON() { return 'today'; } })(0)", "today"),
        ("new Map([['a', 1]])", {"a": 1}),
        ("-0", 0),
    ],
)
async def test_arguments_are_sent_as_the_program_writes_them(
    deno_pool: SandboxPool, value: str, sent: JsonValue
) -> None:
    tools = MemoryTools()
    fact = await run(deno_pool, CALL.replace("VALUE", value), tools)
    assert fact.error is None
    assert [query.args for query in tools.asked] == [{"x": sent}]
    assert [task.args for task in fact.task_results] == [{"x": sent}]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("NaN", "args.x is NaN"),
        ("['\\ud800']", "args.x[0] is text with half of a surrogate pair"),
        ("JSON.rawJSON('9007199254740993')", "args.x is JSON.rawJSON of 9007199254740993"),
        ("() => 1", "args.x is a function"),
        ("Promise.resolve(1)", "args.x is a promise: await it"),
        ("new ArrayBuffer(1)", "args.x is an object of the kind ArrayBuffer"),
    ],
)
async def test_arguments_that_would_be_changed_are_refused_by_path(
    deno_pool: SandboxPool, value: str, found: str
) -> None:
    tools = MemoryTools()
    fact = await run(deno_pool, CALL.replace("VALUE", value), tools)
    assert tools.asked == []
    assert fact.error is not None
    assert fact.error.kind == "user_error"
    assert found in fact.error.message


HOSTILE: dict[str, Any] = {
    "a path": "const o = {}; o['\\n' + 'k'.repeat(100000)] = NaN; return o;",
    "many": "return new Array(100000).fill(NaN);",
    "a kind": """const o = Object.create({ get [Symbol.toStringTag]() {
        return '\\ud800'.repeat(100000); } }); return o;""",
    "an endless toJSON": "const f = () => ({ toJSON: f }); return { toJSON: () => ({ a: f() }) };",
    "a toJSON that throws": "return { toJSON() { throw { toString() { throw 1; } }; } };",
}


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE)
async def test_notices_and_errors_are_bounded(deno_pool: SandboxPool, code: str) -> None:
    fact = await run(deno_pool, code)
    assert len(fact.notices) <= 21
    assert all(len(notice) <= 1000 for notice in fact.notices)
    if fact.error is not None:
        assert fact.error.kind == "user_error"
        assert len(fact.error.message) <= 5000
