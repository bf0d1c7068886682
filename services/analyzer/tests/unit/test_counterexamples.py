"""Small programs, minimised from generated ones, that once ran on another path than the
structure's."""

import pytest

from services.analyzer.tests.support.programs import analysed, flow

CASES = {
    "a default in a pattern is made after the value": (
        "const { a = mcp.fs.read({}) } = mcp.fs.stat({}); mcp.fs.list({});",
        "n2>n1 n1>n3 n2>n3",
    ),
    "also where the pattern is assigned": (
        "let a; [a = mcp.fs.read({})] = mcp.fs.stat({}); mcp.fs.list({});",
        "n2>n1 n1>n3 n2>n3",
    ),
    "what is assigned to is found first": (
        "const a = []; a[mcp.fs.read({})] = mcp.fs.stat({});",
        "n1>n2",
    ),
    "an index after an optional chain may not be needed": (
        "const a = mcp.git.status(); a?.[mcp.fs.read({})][mcp.fs.stat({})]; mcp.fs.list({});",
        "n1>n2 n2>n3 n1>n3 n3>n4 n2>n4 n1>n4",
    ),
    "a value that is there already wins a race": (
        "await Promise.race([1, (async () => { await mcp.fs.stat({}); await mcp.fs.read({}); })()"
        "]); mcp.fs.list({});",
        "f1>n1 n1>n2 n2>j1 f1>j1 j1>n3",
    ),
    "for all of them it waits for the others": (
        "await Promise.all([1, mcp.fs.stat({})]); mcp.fs.list({});",
        "f1>n1 n1>j1 j1>n2",
    ),
    "a function that enters itself fails where that fails": (
        "async function f(n) { try { await f(n - 1); } catch {} await mcp.fs.read({ n }); }"
        " await f(2);",
        "l1>>l1 l1>>d1 n1>d1 d1>d1:ok d1>d1:error d1>n1:ok d1>n1:error",
    ),
    "a function that only enters itself, inside another": (
        "await mcp.fs.stat({}); await Promise.allSettled([(async () => { async function f() {"
        " await f(); await mcp.fs.read({}); } })()]); mcp.fs.list({});",
        "n1>f1 f1>l1 l1>>l1 n2>n2 f1>j1 n2>j1 j1>n3",
    ),
    "what follows a throw in a function that only computes": (
        "[1].map((x) => { if (x > 0) { throw 1; } return x; }); mcp.fs.stat({}); mcp.fs.list({});",
        "n1>n2",
    ),
    "the same where it is called at once": (
        "await mcp.fs.stat({}); await (async () => { if (1) { throw 1; } })(); mcp.fs.list({});",
        "n1>n2",
    ),
    "a callback that fails, and the one that is there for it": (
        "await mcp.fs.stat({}).then(async () => { await mcp.fs.read({}); await mcp.fs.list({}); })"
        ".then(() => mcp.git.status(), () => 1); mcp.fs.write({});",
        "n1>n2 n2>n3 n1>n4 n2>n4 n3>n4 n1>n5 n2>n5 n3>n5 n4>n5",
    ),
    "a chain that is not caught goes on where nothing failed": (
        "await mcp.fs.stat({}).then(async () => { await mcp.fs.read({}); await mcp.fs.list({}); })"
        ".finally(() => 1); mcp.fs.write({});",
        "n1>n2 n2>n3 n1>n4 n3>n4",
    ),
    "a callback for every end": (
        "await mcp.fs.stat({ a: await mcp.git.status() }).then(async () => { await mcp.fs.read({});"
        " await mcp.fs.list({}); }).finally(() => mcp.fs.create({})); mcp.fs.write({});",
        "n2>n1 n1>n3 n3>n4 n1>n5 n3>n5 n4>n5 n1>n6 n3>n6 n4>n6 n5>n6",
    ),
    "names of a round are made before it is told of": (
        "await mcp.fs.stat({}); for (const [a = await mcp.fs.read({})] of [[], [1]]) {"
        " await mcp.fs.list({ a }); } mcp.git.status();",
        "n1>n2 n1>l1 n2>l1 l1>>n3 n3>n2 n3>l1 l1>n4",
    ),
    "a function whose parameters only call what the language has": (
        "const f = (a = Object.keys({}), b = String()) => mcp.fs.stat({ a, b }); f(); f(1);",
        "n1>n2",
    ),
    "a function whose parameters call others stays where it is written": (
        "const g = () => 1; const f = (a = g()) => mcp.fs.stat({ a }); mcp.fs.list({}); f(); f(1);",
        "n1>n2",
    ),
    "a finally that only jumps inside itself leaves every way as it is": (
        "try { if (args.a) return 1; await mcp.fs.stat({}); } finally { x: { break x; } }"
        " mcp.fs.read({});",
        "d1>n1:false n1>n2",
    ),
    "a function in parentheses, and under another type": (
        "const f = () => mcp.fs.read({}); (f)(); (f as any)();",
        "n1>n2",
    ),
    "what is thrown side by side is settled": (
        "await Promise.allSettled([(async () => { await mcp.fs.stat({}); throw 1; })()]);"
        " mcp.fs.list({});",
        "f1>n1 n1>j1 j1>n2",
    ),
    "but not for those that wait for success": (
        "await Promise.all([(async () => { await mcp.fs.stat({}); throw 1; })()]);"
        " mcp.fs.list({});",
        "f1>n1",
    ),
}


@pytest.mark.parametrize(("code", "edges"), CASES.values(), ids=CASES)
def test_it_is_drawn_as_it_runs(code: str, edges: str) -> None:
    assert sorted(flow(analysed(code)).split()) == sorted(edges.split())
