"""Isolation of calls of capabilities, and their limits."""

from collections.abc import Awaitable, Callable

import pytest

from pml_common.contracts.executor import RunFinished
from pml_common.contracts.trace import (
    DecisionTaken,
    ToolStart,
)
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import ALL, READ, calling, capability, make_command
from services.executor.tests.support.harness import deliver, journal_of, make_dependencies, parked
from services.executor.tests.support.memory_tools import MemoryTools
from services.executor.tests.support.realms import RealmPool, skip_in_realms

pytestmark = pytest.mark.integration

Run = Callable[..., Awaitable[RunFinished]]


HOSTILE = {
    "its caller's names": ("return typeof secret + typeof caller;", "undefinedundefined"),
    "its caller's function": (
        "try { return String(arguments.callee.caller); } catch { return 'no'; }",
        "no",
    ),
    "the stack's functions": (
        """try {
          Error.prepareStackTrace = (_, sites) => sites.map((s) => typeof s.getFunction?.());
        } catch { return "no"; }
        const seen = new Error().stack;
        return Array.isArray(seen) && seen.includes("function") ? seen : "no";""",
        "no",
    ),
    "another interface": (
        """const tries = [() => { capabilities.x_evil = 1; }, () => { mcp.fs = 1; },
          () => { __pml.at = 1; }, () => Object.setPrototypeOf(capabilities, {})];
        return tries.map((f) => { try { f(); return "set"; } catch { return "no"; } }).join();""",
        "no,no,no,no",
    ),
    "the depth": (
        """for (const o of [capabilities, mcp, __pml, console, args])
          if (Object.getOwnPropertyNames(o).some((n) => /depth|chain|caller/.test(n))) return o;
        return "no";""",
        "no",
    ),
}


@pytest.mark.parametrize(("code", "expected"), HOSTILE.values(), ids=HOSTILE)
async def test_a_capability_cannot_reach(run_nesting: Run, code: str, expected: str) -> None:
    fact = await run_nesting(
        "const secret = 'mine'; return await capabilities.x_evil({});",
        (capability("x:evil", code),),
    )
    assert (fact.error, fact.result) == (None, expected)


async def test_neither_side_replaces_what_the_other_calls(
    run_nesting: Run, deno_pool: SandboxPool
) -> None:
    web = not isinstance(deno_pool, RealmPool)  # programs with web APIs have no realm
    meddle = """const left = [
      () => { Array.prototype.map = () => ["evil"]; },
      () => { Array.prototype.map.call = () => ["evil"]; },
      () => { String.prototype.trim = () => "evil"; },
      () => { Object.getPrototypeOf([].values()).next = () => ({ done: true }); },
      () => { Promise.prototype.then = () => "evil"; },
      () => { Math.max = () => 9; },
      () => { globalThis.JSON = { parse: () => "evil" }; },
      () => { globalThis.setTimeout = () => "evil"; },
      () => { TextEncoder.prototype.encode = () => "evil"; },
      () => { if (typeof URL === "undefined") throw 1; globalThis.URL = class {}; },
    ].filter((f) => { try { f(); return true; } catch { return false; } }).length;"""
    work = """[...[1, 2]].map((x) => x + 1).concat(Math.max(1, 2), JSON.parse(" 3 "), " x ".trim(),
      WEB await new Promise((done) => setTimeout(() => done("later"), 0)))""".replace(
        "WEB", 'new URL("a:b").href, new TextEncoder().encode("a").length,' if web else ""
    )
    fact = await run_nesting(
        f"{meddle} const theirs = await capabilities.x_evil({{}}); return [left, theirs, {work}];",
        (capability("x:evil", f"{meddle} return [left, {work}];"),),
    )
    right = [2, 3, 2, 3, "x", *(["a:b", 1] if web else []), "later"]
    assert (fact.error, fact.result) == (None, [0, [0, right], right])


async def test_a_program_that_replaces_what_it_can_calls_what_was_granted(run_nesting: Run) -> None:
    fact = await run_nesting(
        """for (const f of [
          () => { capabilities.fs_read_json = () => "mine"; },
          () => { Map.prototype.get = () => ({ number: 9, name: "evil", main: () => 1 }); },
          () => { Array.prototype.includes = () => true; },
          () => { String.prototype.startsWith = () => false; },
          () => { Promise.prototype.then = () => "mine"; },
          () => { Reflect.apply = () => "mine"; },
        ]) try { f(); } catch {}
        return await __pml.at("n1", capabilities.fs_read_json)({ path: "/x" });"""
    )
    assert (fact.error, fact.result) == (None, "text")
    assert [one.capability.capability_id for one in fact.nested] == [READ.capability_id]
    assert [task.tool for task in fact.task_results] == ["fs:stat", "fs:read"]


@pytest.mark.parametrize("name", ["__proto__", "constructor", "hasOwnProperty", "toJSON2"])
async def test_a_name_that_nobody_granted_ends_the_run(run_nesting: Run, name: str) -> None:
    fact = await run_nesting(f"return await capabilities['{name}']({{}});")
    assert fact.error is not None
    assert (fact.error.kind, fact.error.tool) == ("denied", f"cap:{name}")


async def test_a_capability_outside_the_grant_keeps_the_run_from_starting(
    deno_pool: SandboxPool,
) -> None:
    command = make_command(calling("fs_read_json"), injected=ALL)
    changed = READ.model_copy(update={"code_hash": "other"})
    command = command.model_copy(update={"injected": (changed,)})
    (fact,) = await deliver(command, make_dependencies(MemoryBus(), deno_pool, MemoryTools()))
    assert isinstance(fact, RunFinished)
    assert fact.error is not None
    assert fact.error.message == "the grant does not cover capability fs:read_json as it is now"


async def test_a_tool_outside_the_grant_is_asked_about_inside_a_capability_too(
    deno_pool: SandboxPool,
) -> None:
    tools, evil = MemoryTools(), capability("x:evil", "return await mcp.net.send({ to: 1 });")
    command = make_command("return await capabilities.x_evil();", injected=[evil])
    fact = await parked(command, make_dependencies(MemoryBus(), deno_pool, tools))
    assert (fact.wanted.tool, fact.wanted.args) == ("net:send", {"to": 1})
    assert fact.wanted.node_id == "dyn:cap:x_evil/dyn:net:send"
    assert fact.wanted.line is None
    assert tools.asked == []


async def test_a_run_calls_only_so_many_capabilities(
    run_nesting: Run, deno_pool: SandboxPool
) -> None:
    skip_in_realms(deno_pool)
    one = capability("x:one", "return 1;")
    fact = await run_nesting("for (;;) await capabilities.x_one();", (one,))
    assert fact.error is not None
    assert fact.error.kind == "call_limit"
    assert len(fact.nested) == 1000


async def test_a_hot_loop_inside_capabilities_is_counted(run_nesting: Run) -> None:
    bus = MemoryBus()
    hot = capability(
        "x:hot", 'for (let i = 0; i < 5000; i++) __pml.took("d1", i % 2 ? "a" : "b"); return 1;'
    )
    code = 'for (let i = 0; i < 4; i++) await __pml.at("n1", capabilities.x_hot)();'
    fact = await run_nesting(code, (hot,), bus=bus)
    entries = await journal_of(bus, fact)
    taken = [entry for entry in entries if isinstance(entry, DecisionTaken)]
    assert sum(max(1, entry.counted) for entry in taken) == 20_000
    assert len(taken) < 1_100
    assert {entry.node_id for entry in taken} == {"n1/d1"}
    assert not any(isinstance(entry, ToolStart) for entry in entries)
