"""Programs that call capabilities, in real sandboxes."""

from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.trace import (
    CapabilityEnd,
    CapabilityStart,
    DecisionTaken,
    LogWritten,
)
from pml_common.testing.memory_bus import MemoryBus
from services.executor.tests.support.builders import READ, calling, capability
from services.executor.tests.support.harness import journal_of
from services.executor.tests.support.memory_tools import MemoryTools, answering, ending

pytestmark = pytest.mark.integration

Run = Callable[..., Awaitable[RunFinished]]


async def test_a_capability_and_the_tools_it_calls_are_both_traced(run_nesting: Run) -> None:
    bus = MemoryBus()
    fact = await run_nesting(calling("fs_read_json", '{ path: "/x" }'), bus=bus)

    assert (fact.error, fact.result) == (None, "text")
    assert (fact.executed_path, fact.decisions) == (("n1",), ())
    (nested,) = fact.nested
    assert (nested.name, nested.node_id, nested.occurrence) == ("fs:read_json", "n1", 0)
    assert (nested.success, nested.result) == (True, "text")
    assert (nested.executed_path, nested.parent_trace_id) == (("n1", "d1", "n2"), fact.trace_id)
    assert nested.capability.capability_id == READ.capability_id
    assert nested.capability.code_hash == READ.code_hash
    assert [(t.node_id, t.tool, t.parent_trace_id) for t in fact.task_results] == [
        ("n1/n1", "fs:stat", nested.trace_id),
        ("n1/n2", "fs:read", nested.trace_id),
    ]
    entries = await journal_of(bus, fact)
    inside = [e for e in entries if isinstance(e, DecisionTaken | LogWritten)]
    assert {entry.trace_id for entry in inside} == {nested.trace_id}


async def test_nested_calls_are_a_tree_in_the_order_of_their_times(run_nesting: Run) -> None:
    bus = MemoryBus()
    fact = await run_nesting(calling("top_all"), bus=bus)

    assert fact.result == {"day": "text", "got": {"from": "top"}}
    assert [(one.name, one.node_id) for one in fact.nested] == [
        ("top:all", "n1"),
        ("report:weekly", "n1/n1"),
        ("fs:read_json", "n1/n1/n1"),
    ]
    traces = [fact.trace_id, *(one.trace_id for one in fact.nested)]
    assert [one.parent_trace_id for one in fact.nested] == traces[:-1]
    assert {task.parent_trace_id for task in fact.task_results} == {traces[-1]}
    entries = await journal_of(bus, fact)
    assert [entry.ts for entry in entries] == sorted(entry.ts for entry in entries)
    begun = [e.trace_id for e in entries if isinstance(e, CapabilityStart)]
    ended = [e.trace_id for e in entries if isinstance(e, CapabilityEnd)]
    assert (begun, ended) == (traces, traces[::-1])
    spans = [(one.started_at, one.started_at + one.duration_ms) for one in fact.nested]
    for (outer_start, outer_end), (start, end) in pairwise(spans):
        assert outer_start <= start <= end <= outer_end


async def test_the_fourth_inside_one_another_is_refused(run_nesting: Run) -> None:
    fact = await run_nesting(calling("top_deeper"))
    assert fact.error is not None
    assert fact.error.kind == "user_error"
    assert fact.error.message == (
        "top:deeper, line 1: top:all, line 1: report:weekly, line 1: TypeError: fs:read_json "
        "cannot be called here: capabilities call one another at most 3 deep, and this is "
        "top:deeper → top:all → report:weekly"
    )
    assert fact.error.fault is None  # it is the program that nests them
    assert [one.error and one.error.fault for one in fact.nested] == ["caller"] * 3


SELF = capability("loop:self", "return await capabilities.loop_self({ n: args.n + 1 });")
PING = capability("loop:ping", "return await capabilities.loop_pong({ n: args.n + 1 });")
PONG = capability("loop:pong", "return await capabilities.loop_ping({ n: args.n + 1 });")


@pytest.mark.parametrize(
    ("name", "chain"),
    [
        ("loop_self", "loop:self → loop:self → loop:self"),
        ("loop_ping", "loop:ping → loop:pong → loop:ping"),
    ],
)
async def test_cycles_end_at_the_greatest_depth(run_nesting: Run, name: str, chain: str) -> None:
    fact = await run_nesting(calling(name, "{ n: 0 }"), (SELF, PING, PONG))
    assert fact.error is not None
    assert fact.error.message.endswith(f"at most 3 deep, and this is {chain}")
    assert len(fact.nested) == 3


async def test_capabilities_of_one_callable_name_are_told_apart(run_nesting: Run) -> None:
    one, other = capability("a:b_c", "return 1;"), capability("a:b-c", "return 2;")
    suffix = other.capability_id.hex[-4:]
    fact = await run_nesting(
        f"return [await capabilities.a_b_c(), await capabilities.a_b_c_{suffix}(),"
        " await mcp.call('cap:a:b-c'), await mcp.cap['a:b_c']()];",
        (one, other.model_copy(update={"called_as": ("a:b-c",)})),
    )
    assert (fact.error, fact.result) == (None, [1, 2, 2, 1])


async def test_neither_side_gets_at_objects_of_the_other(run_nesting: Run) -> None:
    fact = await run_nesting(
        """const mine = { list: [1], when: undefined };
        const theirs = await capabilities.x_grow(mine);
        theirs.push("outside");
        return [mine, theirs, await capabilities.x_grow(mine)];""",
        (capability("x:grow", "args.list.push(2); return args.list;"),),
    )
    assert fact.result == [{"list": [1]}, [1, 2, "outside"], [1, 2]]


async def test_an_error_keeps_its_capability_and_line_and_can_be_caught(run_nesting: Run) -> None:
    tools = MemoryTools({"fs:stat": answering({"exists": False})})
    told = "fs:read_json, line 7: RangeError: nothing at /x"
    program = '\n\nreturn await «__pml.at("n1", »capabilities.fs_read_json«)»({ path: "/x" });'

    escaped = await run_nesting(program, tools=tools)
    assert escaped.error is not None
    assert (escaped.error.kind, escaped.error.message) == ("user_error", told)
    assert (escaped.error.line, escaped.error.column) == (3, 27)
    assert escaped.nested[0].error is not None
    assert (escaped.nested[0].error.line, escaped.nested[0].error.column) == (7, 11)

    caught = await run_nesting(
        """try { await capabilities.fs_read_json({ path: "/x" }); }
        catch (e) { return [e.name, e.message]; }""",
        tools=tools,
    )
    assert caught.result == ["CapabilityError", told]


async def test_a_tools_error_that_escapes_a_capability_names_the_tool(run_nesting: Run) -> None:
    tools = MemoryTools({"fs:stat": ending(ToolOutcome(status="tool_error", message="no disk"))})
    fact = await run_nesting(calling("fs_read_json", '{ path: "/x" }'), tools=tools)
    assert fact.error is not None
    assert (fact.error.kind, fact.error.tool, fact.error.node_id) == (
        "tool_error",
        "fs:stat",
        "n1/n1",
    )
    assert fact.error.message == "fs:read_json, line 3: no disk"
    assert fact.error.arguments == {"path": "/x"}


async def test_what_a_capability_leaves_behind_ends_the_run_under_its_name(
    run_nesting: Run,
) -> None:
    waits = "await new Promise((then) => setTimeout(then, 5000));"
    stray = capability("x:stray", f"\nPromise.reject(new Error('lost'));\n{waits}")
    fact = await run_nesting(calling("x_stray"), (stray,))
    assert fact.error is not None
    assert fact.error.message == "x:stray, line 2: lost"
    assert fact.error.line is None
    assert fact.nested[0].error is not None
    assert fact.nested[0].error.kind == "outcome_unknown"


async def test_a_capability_that_does_not_load_is_named(run_nesting: Run) -> None:
    fact = await run_nesting(
        "return 1;", (READ, capability("x:bad", "\nconst a = 1; const a = 2;"))
    )
    assert fact.error is not None
    assert fact.error.kind == "syntax"
    assert fact.error.message.startswith("x:bad, line 2: ")


async def test_calls_side_by_side_keep_their_own_depth_and_parents(run_nesting: Run) -> None:
    fact = await run_nesting(
        """return await Promise.all([3, 1, 2].map(async (i) => {
          for (let n = 0; n < i; n++) await null;
          return await __pml.at("n1", capabilities.top_all)({ i });
        }));"""
    )
    assert fact.error is None
    assert len(fact.nested) == 9
    by_trace = {one.trace_id: one for one in fact.nested}
    for one in fact.nested:
        parent = by_trace.get(one.parent_trace_id)
        assert one.node_id == ("n1" if parent is None else f"{parent.node_id}/n1")
    assert len({task.parent_trace_id for task in fact.task_results}) == 3
    assert len({task.trace_id for task in fact.task_results}) == 6
