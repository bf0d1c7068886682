"""Each construct as the analyzer instruments it: what a run of it reports, and that it runs as its
author's text does."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pml_common.bus.port import Bus
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import DecisionTaken, LoopPassed, TraceEvent
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import author_text, make_command
from services.executor.tests.support.constructs import CASES
from services.executor.tests.support.harness import deliver, journal_of, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools, ending

pytestmark = pytest.mark.integration

Run = Callable[..., Awaitable[RunFinished]]

FAILING = MemoryTools(
    {"api:c": ending(ToolOutcome(status="tool_error", message="api:c is out of order"))}
)


@pytest.fixture
def run(
    deno_pool: SandboxPool,
) -> Run:
    async def run(
        code: str, args: JsonObject | None = None, bus: Bus | None = None, **command: Any
    ) -> RunFinished:
        deps = make_dependencies(bus or MemoryBus(), deno_pool, FAILING)
        (fact,) = await deliver(make_command(code, args, **command), deps)
        assert isinstance(fact, RunFinished)
        return fact

    return run


@pytest.mark.parametrize("name", CASES)
async def test_a_construct_reports_the_way_it_was_gone_through(run: Run, name: str) -> None:
    case, bus = CASES[name], MemoryBus()
    fact = await run(case.code, case.args, bus)

    assert fact.error is None
    reported = [told for entry in await journal_of(bus, fact) if (told := told_of(entry))]
    arranged = list if case.in_order else sorted
    assert arranged(reported) == arranged(case.reported.split())
    assert fact.executed_path == tuple(case.path.split())


def told_of(entry: TraceEvent) -> str | None:
    """Format a report in the notation of the cases."""
    if isinstance(entry, DecisionTaken):
        return f"{entry.node_id}:{entry.outcome}"
    return entry.node_id if entry.type in ("tool_start", "loop") else None


@pytest.mark.parametrize("name", CASES)
async def test_an_instrumented_program_does_what_its_authors_text_does(run: Run, name: str) -> None:
    case = CASES[name]
    fact, original = await run(case.code, case.args), await run(author_text(case.code), case.args)

    assert (fact.error, fact.result) == (original.error, original.result)
    assert [(t.tool, t.args) for t in fact.task_results] == [
        (t.tool, t.args) for t in original.task_results
    ]


async def test_rounds_are_numbered_from_one(run: Run) -> None:
    bus = MemoryBus()
    fact = await run('for (const x of [7, 8, 9]) {« __pml.round("l1");» }', bus=bus)
    rounds = [e for e in await journal_of(bus, fact) if isinstance(e, LoopPassed)]
    assert [(e.occurrence, e.iterations, e.counted) for e in rounds] == [
        (0, 1, 0),
        (1, 2, 0),
        (2, 3, 0),
    ]


PATCHES = """
const meddled: string[] = [];
const meddle = (owner: object, name: PropertyKey) => {
  const original = Reflect.get(owner, name);
  Reflect.defineProperty(owner, name, { configurable: true, value: function (...args: unknown[]) {
    meddled[meddled.length] = String(name);
    return apply(original, this, args);
  } });
};
const apply = Reflect.apply;
for (const name of ["get", "set", "has", "forEach", Symbol.iterator]) meddle(Map.prototype, name);
for (const name of ["push", "join", "concat", Symbol.iterator]) meddle(Array.prototype, name);
for (const name of ["apply", "bind"]) meddle(Function.prototype, name); // Deno's port needs call
for (const name of ["slice", "toString", "valueOf"]) meddle(String.prototype, name);
for (const name of ["apply", "get", "construct"]) meddle(Reflect, name);
meddle(JSON, "stringify"); meddle(Object, "freeze"); meddle(globalThis, "queueMicrotask");
"""


async def test_no_report_passes_through_what_a_program_patched(run: Run) -> None:
    code = CASES["a function entered in two ways"].code
    fact = await run(
        f"const result = await (async () => {{ {code} }})(); return [meddled, result];".replace(
            "const result", f"{PATCHES} meddled.length = 0; const result", 1
        )
    )
    untouched = await run(code)

    assert fact.error is None
    assert fact.result == [[], untouched.result]
    assert (fact.executed_path, fact.decisions) == (untouched.executed_path, untouched.decisions)


@pytest.mark.parametrize(
    "forged",
    [
        "__pml.round = () => {};",
        "delete (__pml as any).at;",
        "Object.defineProperty(__pml, 'took', { value: 1 });",
        "Object.setPrototypeOf(__pml, {});",
        "(__pml.via as any).apply = 1;",
    ],
)
async def test_the_reports_cannot_be_replaced(run: Run, forged: str) -> None:
    fact = await run(forged)
    assert fact.error is not None
    assert fact.error.message.startswith("TypeError: ")


@pytest.mark.parametrize(
    ("code", "message", "place"),
    [
        (
            'const x = 1;\nawait «__pml.at("n1", »mcp.api.a«)»({}).nope();',
            "TypeError: mcp.api.a(...).nope is not a function",
            (2, 21),
        ),
        (
            'const own = { f: 1 };\n  if («__pml.decide("d1", »own.f(1)«)») {}',
            "TypeError: own.f is not a function",
            (2, 11),
        ),
        (
            'const own = { f: 1 };\n  if («__pml.decide("d1", »«__pml.at("n1", »own.f«)»(1)«)») {}',
            "TypeError: own.f is not a function",
            (2, 11),
        ),
        (
            'if («__pml.decide("d1", »missing(1)«)») {}',
            "ReferenceError: missing is not defined",
            (1, 5),
        ),
        (
            'const f = 1; for (const x of []) {}\n("é𝒳", «__pml.via(1, "f", »f«)»());',
            "TypeError: f is not a function",
            (2, 8),
        ),
        (
            'const q = () => «{ const __pml_1 = __pml.entered("q", 1); return (»({})«); }»;\n'
            'const { x: { y } } = «__pml.via(1, "q", »q«)»();',
            "TypeError: Cannot read properties of undefined (reading 'y')",
            (2, 14),
        ),
        (
            'let a: any; const b = 1; («__pml.absent("d1", »a«)» ?? b)();',
            "TypeError: (a ?? b) is not a function",
            (1, 33),
        ),
    ],
)
async def test_what_goes_wrong_is_told_in_the_authors_words_and_at_its_place(
    run: Run, code: str, message: str, place: tuple[int, int]
) -> None:
    fact, original = await run(code), await run(author_text(code))

    assert fact.error is not None
    assert fact.error.message == message
    assert (fact.error.line, fact.error.column) == place
    assert original.error is not None
    assert original.error.message == message
    assert original.error.line == place[0]
