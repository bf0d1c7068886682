"""Whole runs of real programs in real sandboxes."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import JsonValue
from pydantic_core import to_json

from pml_common.bus.port import Bus
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.trace import LogWritten
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.domain.logs import MOST_BYTES
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.harness import deliver, journal_of, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools, answering, ending
from services.executor.tests.support.realms import RealmPool

pytestmark = pytest.mark.integration

Run = Callable[..., Awaitable[RunFinished]]

ENSURE = """const { path } = args; const file = await __pml.at("n1", mcp.fs.stat)({ path });
if (__pml.decide("d1", file.exists)) {
  const content = await __pml.at("n2", mcp.fs.read)({ path });
  return content;
} else {
  await __pml.at("n3", mcp.fs.create)({ path });
  await __pml.at("n4", mcp.fs.write)({ path, content: "" });
}"""


DEEP = "let a: unknown = []; for (let i = 0; i < 1e6; i++) a = [a]; return a;"


@pytest.fixture
def run(
    deno_pool: SandboxPool,
) -> Run:
    async def run(
        code: str, tools: MemoryTools | None = None, bus: Bus | None = None, **command: Any
    ) -> RunFinished:
        deps = make_dependencies(bus or MemoryBus(), deno_pool, tools or MemoryTools())
        (fact,) = await deliver(make_command(code, **command), deps)
        assert isinstance(fact, RunFinished)
        return fact

    return run


@pytest.mark.parametrize(
    ("exists", "path", "result"),
    [(True, ("n1", "d1", "n2"), "hello"), (False, ("n1", "d1", "n3", "n4"), None)],
)
async def test_the_example_takes_either_branch(
    run: Run, exists: bool, path: tuple[str, ...], result: JsonValue
) -> None:
    tools = MemoryTools({"fs:stat": answering({"exists": exists}), "fs:read": answering("hello")})
    fact = await run(ENSURE, tools, args={"path": "/x"})

    assert (fact.success, fact.executed_path, fact.result) == (True, path, result)
    assert [task.args["path"] for task in fact.task_results] == ["/x"] * (len(path) - 1)


async def test_promise_all_is_recorded_call_by_call(run: Run) -> None:
    code = """const items = await Promise.all([1, 2, 3].map(async (i) => {
      const a = await __pml.at("n1", mcp.api.a)({ i });
      return await __pml.at("n2", mcp.api.b)({ a });
    }));
    return items;"""
    fact = await run(code)

    assert fact.result == [{"a": {"i": 1}}, {"a": {"i": 2}}, {"a": {"i": 3}}]
    assert len(fact.task_results) == 6
    assert sorted(t.occurrence for t in fact.task_results if t.node_id == "n2") == [0, 1, 2]


async def test_a_call_that_no_analysis_saw_is_recorded_under_its_tools_name(run: Run) -> None:
    fact = await run('const s = "api"; return await mcp[s]["a"]({ x: 1 });')
    assert fact.executed_path == ("dyn:api:a",)


async def test_what_the_console_gets_is_in_the_journal(run: Run) -> None:
    bus = MemoryBus()
    fact = await run(
        """console.log("a", { b: 1n }, [undefined], () => 1);
        console.error(new TypeError("no"));
        await mcp.api.a();
        console.debug("%s".repeat(10_000));""",
        bus=bus,
    )
    logs = [entry for entry in await journal_of(bus, fact) if isinstance(entry, LogWritten)]

    assert [(log.level, log.message[:40]) for log in logs] == [
        ("info", 'a {"b":"1"} [null] [Function ]'),
        ("error", "TypeError: no"),
        ("debug", "%s" * 20),
    ]
    assert logs[-1].message.endswith("… (10000 more characters)")


async def test_of_a_long_console_the_last_lines_are_kept_and_all_are_counted(run: Run) -> None:
    fact = await run(
        'for (let i = 0; i < 20000; i++) console.log("line", i, "x".repeat(100)); return 1;',
        timeout_s=90,
    )
    assert fact.result == 1
    assert len(fact.logs) + fact.logs_omitted == 20_000
    kept = [f"line {n} {'x' * 100}" for n in range(fact.logs_omitted, 20_000)]
    assert [line.message for line in fact.logs] == kept
    assert MOST_BYTES - 1000 < len(to_json(fact.logs)) <= MOST_BYTES + 1


@pytest.mark.parametrize(
    ("code", "kind", "message", "place"),
    [
        ("const a = 1;\n  a.b.c();", "user_error", "TypeError: Cannot read", (2, 7)),
        ('\n\nthrow new Error("of no use");', "user_error", "of no use", (3, 7)),
        ('throw "words"', "user_error", "the program threw words", (None, None)),
        ("const x = ;", "syntax", "Expression expected", (1, 11)),
        (
            "await Promise.all([Promise.reject(new RangeError('far'))]);",
            "user_error",
            "RangeError: far",
            (1, 35),
        ),
        (
            'setTimeout(() => { throw new Error("late"); }, 1);\nawait new Promise(() => {});',
            "user_error",
            "late",
            (1, 26),
        ),
        ("return (function f(): number { return f(); })();", "user_error", "RangeError", None),
        (DEEP, "user_error", "nested deeper than 100 levels", None),
        ("return eval('1 + 1');", "user_error", "EvalError", None),
    ],
)
async def test_what_a_program_does_wrong_is_told_at_its_line(
    run: Run, code: str, kind: str, message: str, place: tuple[int, int] | None
) -> None:
    fact = await run(code)

    assert fact.error is not None
    assert fact.error.kind == kind
    assert message in fact.error.message
    if place is not None:
        assert (fact.error.line, fact.error.column) == place


async def test_an_escaping_tool_error_points_at_its_call(run: Run) -> None:
    tools = MemoryTools({"fs:read": ending(ToolOutcome(status="tool_error", message="no file"))})
    code = '\n  return await «__pml.at("n1", »mcp.fs.read«)»({ path: "/x" });'
    fact = await run(code, tools)

    assert fact.error is not None
    error = fact.error
    assert (error.kind, error.message, error.node_id) == ("tool_error", "no file", "n1")
    assert (error.tool, error.arguments) == ("fs:read", {"path": "/x"})
    assert (error.line, error.column) == (2, 23)


async def test_a_busy_program_is_killed_at_its_deadline(run: Run) -> None:
    fact = await run("for (;;) ;", timeout_s=0.5)  # waits: it is over

    assert fact.error is not None
    assert fact.error.kind == "timeout"


async def test_values_cross_as_json(run: Run) -> None:
    fact = await run(
        """const cycle: Record<string, unknown> = { n: NaN, u: undefined, f() {}, big: 2n ** 70n };
        cycle.self = cycle;
        return [cycle, new Map([["k", new Set([1])]]), new Date(0), new Uint8Array([7]),
          "half \\ud800", undefined, new Error("e")];"""
    )
    assert fact.result == [
        {"n": None, "big": str(2**70), "self": "[Circular]"},
        {"k": [1]},
        "1970-01-01T00:00:00.000Z",
        [7],
        "half \ufffd",
        None,
        {"name": "Error", "message": "e"},
    ]


async def test_time_and_chance_depend_on_the_journal_alone(run: Run) -> None:
    code = """
    const seen = () => [Math.random(), crypto.randomUUID(), new Date(), performance.now()];
    const before = [Date.now(), ...seen()];
    await new Promise((r) => setTimeout(r, 30));
    await mcp.api.a();
    return [...before, ...seen()];"""
    first, second = await run(code), await run(code)

    values, others = first.result, second.result
    assert isinstance(values, list)
    assert isinstance(others, list)
    assert values[0] == int(first.started_at)
    assert len({str(value) for value in values}) == len(values)
    assert values[1] != others[1]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            'try { await mcp.api.a({}); } catch (e) { throw new Error("no", { cause: e }); }',
            "no\ncaused by ToolError: disk full",
        ),
        (
            'await Promise.any([Promise.reject(new TypeError("a")), mcp.api.a({})]);',
            "AggregateError: All promises were rejected\nerror 1: TypeError: a\n"
            "error 2: ToolError: disk full",
        ),
    ],
)
async def test_the_causes_of_an_error_are_told(run: Run, code: str, message: str) -> None:
    tools = MemoryTools({"api:a": ending(ToolOutcome(status="tool_error", message="disk full"))})
    fact = await run(code, tools)
    assert fact.error is not None
    assert (fact.error.kind, fact.error.message) == ("user_error", message)


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ('return "x".repeat(5_000_000);', "the result takes 5000"),
        ('await mcp.api.a({ x: "x".repeat(5_000_000) });', "the arguments of a call take 5000"),
    ],
)
async def test_what_is_too_long_names_its_size_and_the_limit(
    run: Run, code: str, part: str
) -> None:
    fact = await run(code)
    assert fact.error is not None
    assert fact.error.message.startswith(part)
    assert f"more than the {4 * 1024 * 1024} that a run can pass on" in fact.error.message


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ('return "x".repeat(5_000_000);', "output_limit"),
        ('await mcp.api.a({ x: "x".repeat(5_000_000) });', "output_limit"),
        ('for (;;) { console.log("x".repeat(9_000)); await null; }', "output_limit"),
        ("for (;;) await mcp.api.a();", "call_limit"),
        ("const a: unknown[] = []; for (;;) a.push(new Array(1000).fill({}));", "memory_limit"),
    ],
)
async def test_what_a_program_takes_too_much_of_ends_it(
    run: Run, code: str, kind: str, deno_pool: SandboxPool
) -> None:
    fact = await run(code, timeout_s=90)
    assert fact.error is not None
    if isinstance(deno_pool, RealmPool) and "console.log" in code:
        kind = "memory_limit"  # what microtasks without end write does not leave the realm
    assert fact.error.kind == kind
