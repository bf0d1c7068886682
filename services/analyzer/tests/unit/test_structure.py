"""Which nodes and edges a program has: code → nodes, flow."""

import pytest

from services.analyzer.tests.programs import SOURCES_EXAMPLE, analysed, flow, nodes, provided

CASES: dict[str, tuple[str, str, str]] = {
    "nothing is called": ("return 1 + 1;", "", ""),
    "calls in order": (
        "await mcp.fs.stat({}); await mcp.fs.read({});",
        "n1 fs:stat, n2 fs:read",
        "n1>n2",
    ),
    "not awaited": ("mcp.fs.stat({}); mcp.fs.read({});", "n1 fs:stat, n2 fs:read", "n1>n2"),
    "optional chains": (
        "await mcp?.fs?.stat({}); await mcp.fs.read?.({});",
        "n1 fs:stat, n2 fs:read",
        "n1>n2",
    ),
    "types and parentheses in the way": (
        "await ((mcp as any).fs!.stat)<{ x: 1 }>({}); (await (mcp satisfies any)).fs.read({});",
        "n1 fs:stat, n2 fs:read",
        "n1>n2",
    ),
    "an argument of another call comes first": (
        "await mcp.fs.write({ path, content: await mcp.fs.read({ path }) });",
        "n1 fs:write, n2 fs:read",
        "n2>n1",
    ),
    "in an object, a list, a template, a cast": (
        "const o = { a: await mcp.fs.stat({}), b: [await mcp.fs.read({})],"
        " c: `${await mcp.git.status()}`, d: (await mcp.fs.list({})) as string[] };",
        "n1 fs:stat, n2 fs:read, n3 git:status, n4 fs:list",
        "n1>n2 n2>n3 n3>n4",
    ),
    "a tagged template is a call": ("await mcp.fs.read`a`;", "n1 fs:read", ""),
    "if without else": (
        "if (a) { await mcp.fs.stat({}); } await mcp.fs.read({});",
        "d1 a, n1 fs:stat, n2 fs:read",
        "d1>n1:true n1>n2 d1>n2:false",
    ),
    "if with an empty branch": (
        "if (a) {} else { await mcp.fs.stat({}) } await mcp.fs.read({})",
        "d1 a, n1 fs:stat, n2 fs:read",
        "d1>n1:false d1>n2:true n1>n2",
    ),
    "an if without calls decides too": (
        "if (!a) return null; return mcp.fs.read({});",
        "d1 !a, n1 fs:read",
        "d1>n1:false",
    ),
    "else if": (
        "if (a) mcp.fs.stat({}); else if (b) mcp.fs.read({}); else mcp.git.status();",
        "d1 a, n1 fs:stat, d2 b, n2 fs:read, n3 git:status",
        "d1>n1:true d1>d2:false d2>n2:true d2>n3:false",
    ),
    "a call in a condition": (
        "if ((await mcp.fs.stat({ path })).exists) await mcp.fs.read({ path });",
        "d1 (await mcp.fs.stat({ path })).exists, n1 fs:stat, n2 fs:read",
        "n1>d1 d1>n2:true",
    ),
    "a conditional expression that makes calls": (
        "const x = ok ? await mcp.fs.stat({}) : await mcp.fs.read({}); await mcp.git.status();",
        "d1 ok, n1 fs:stat, n2 fs:read, n3 git:status",
        "d1>n1:true d1>n2:false n1>n3 n2>n3",
    ),
    "a conditional expression that chooses values only": (
        "const x = ok ? 1 : 2; await mcp.git.status();",
        "n1 git:status",
        "",
    ),
    "a conditional expression on a call": (
        "return (await mcp.fs.stat({})) ? 1 : 2;",
        "n1 fs:stat",
        "",
    ),
    "both branches return": (
        "if (a) { return mcp.fs.stat({}); } else { throw await mcp.fs.read({}); }"
        " await mcp.git.status(); await mcp.fs.list({});",
        "d1 a, n1 fs:stat, n2 fs:read, n3 git:status, n4 fs:list",
        "d1>n1:true d1>n2:false",
    ),
    "short circuits": (
        "a && (await mcp.fs.stat({})); b ?? (await mcp.fs.read({})); await mcp.git.status();",
        "d1 a, n1 fs:stat, d2 b == null, n2 fs:read, n3 git:status",
        "d1>n1:true n1>d2 d1>d2:false d2>n2:true n2>n3 d2>n3:false",
    ),
    "a default by assignment": (
        "let a; a ||= await mcp.fs.stat({}); a += await mcp.fs.read({}); a = a && 1;",
        "d1 a, n1 fs:stat, n2 fs:read",
        "d1>n1:false d1>n2:true n1>n2",
    ),
    "for of": (
        "for (const x of await mcp.fs.list({})) { await mcp.fs.read({ path: x }); } await mcp.git.status();",
        "l1 for-of await mcp.fs.list({}), n1 fs:list, n2 fs:read, n3 git:status",
        "n1>l1 n2>l1 l1>>n2 l1>n3",
    ),
    "for in over a member": (
        "const o = {}; for (o.k in await mcp.fs.stat({})) await mcp.fs.read({});",
        "l1 for-in await mcp.fs.stat({}), n1 fs:stat, n2 fs:read",
        "n1>l1 n2>l1 l1>>n2",
    ),
    "for await": (
        "for await (const x of mcp.fs.list({})) if (x) break;",
        "l1 for-await mcp.fs.list({}), n1 fs:list, d1 x",
        "n1>l1 d1>l1:false l1>>d1",
    ),
    "for with calls in its head": (
        "for (let i = await mcp.fs.stat({}); i < (await mcp.fs.read({})); i = mcp.fs.list({})) { mcp.git.status(); } mcp.fs.create({});",
        "l1 for i < (await mcp.fs.read({})), n1 fs:stat, n2 fs:read, n3 fs:list, n4 git:status, n5 fs:create",
        "n1>n2 n3>n2 n2>l1 l1>>n4 n4>n3 l1>n5",
    ),
    "while with a break and a continue": (
        "while (await mcp.fs.stat({})) { if (a) break; if (b) continue; await mcp.fs.read({}); } await mcp.git.status();",
        "l1 while await mcp.fs.stat({}), n1 fs:stat, d1 a, d2 b, n2 fs:read, n3 git:status",
        "n2>n1 d2>n1:true n1>l1 l1>>d1 d1>d2:false d2>n2:false l1>n3 d1>n3:true",
    ),
    "do while": (
        "do { await mcp.fs.stat({}); } while (await mcp.fs.read({})); await mcp.git.status();",
        "l1 do-while await mcp.fs.read({}), n1 fs:stat, n2 fs:read, n3 git:status",
        "n2>l1 l1>>n1 n1>n2 l1>n3",
    ),
    "a loop that always leaves": (
        "for (;;) { await mcp.fs.stat({}); return 1; } ",
        "l1 for true, n1 fs:stat",
        "l1>>n1",
    ),
    "labels": (
        "outer: for (const a of as) { for (const b of bs) { if (b) continue outer; if (a) break outer; await mcp.fs.stat({}); } } await mcp.fs.read({});",
        "l1 for-of as, l2 for-of bs, d1 b, d2 a, n1 fs:stat, n2 fs:read",
        "l2>l1 d1>l1:true l1>>l2 n1>l2 l2>>d1 d1>d2:false d2>n1:false l1>n2 d2>n2:true",
    ),
    "switch with fall-through, break and default": (
        "switch (await mcp.fs.stat({})) { case 1: await mcp.fs.read({}); case 2: await mcp.fs.list({}); break; default: await mcp.git.status(); } mcp.fs.create({});",
        "d1 await mcp.fs.stat({}), n1 fs:stat, n2 fs:read, n3 fs:list, n4 git:status, n5 fs:create",
        "n1>d1 d1>n2:case:1 n2>n3 d1>n3:case:2 d1>n4:default n4>n5 n3>n5",
    ),
    "switch without default": (
        "await mcp.fs.stat({}); switch (a) { case await mcp.fs.read({}): break; } await mcp.git.status();",
        "n1 fs:stat, d1 a, n2 fs:read, n3 git:status",
        "n1>n2 n1>d1 n2>d1 d1>n3:default d1>n3:case:await mcp.fs.read({})",
    ),
    "an empty switch": (
        "switch (await mcp.fs.stat({})) {}",
        "d1 await mcp.fs.stat({}), n1 fs:stat",
        "n1>d1",
    ),
    "try and catch": (
        "try { await mcp.fs.stat({}); await mcp.fs.read({}); } catch { await mcp.git.status(); } await mcp.fs.list({});",
        "d1 try, n1 fs:stat, n2 fs:read, n3 git:status, n4 fs:list",
        "n1>n2 n2>d1 n1>d1 d1>n3:error d1>n4:ok n3>n4",
    ),
    "whatever stands in a try may fail": (
        "try { for (const a of b) await mcp.fs.stat({}); a && mcp.fs.read({}); if (a) { l: switch (a) { default: try { (() => mcp.fs.list({}))() } finally {} } } } catch { await mcp.git.status(); }",
        "d1 try, l1 for-of b, n1 fs:stat, d2 a, n2 fs:read, d3 a, d4 a, n3 fs:list, n4 git:status",
        "n1>l1 l1>>n1 l1>d2 d2>n2:true n2>d3 d2>d3:false d3>d4:true d4>n3:default n3>d1 d3>d1:false l1>d1 l1>>d1 n1>d1 d2>d1:true n2>d1 d2>d1:false d3>d1:true d4>d1:default d1>n4:error",
    ),
    "a throw goes to the catch": (
        "try { if (a) throw new Error('x'); return 1; } catch (e) { await mcp.fs.stat({}); }",
        "d1 try, d2 a, n1 fs:stat",
        "d2>d1:true d2>d1:false d1>n1:error",
    ),
    "finally with nothing in it": (
        "try { if (a) return 1; await mcp.fs.stat({}); } finally { done(); } await mcp.fs.read({});"
        " function done() {}",
        "d1 a, n1 fs:stat, n2 fs:read",
        "d1>n1:false n1>n2",
    ),
    "finally after a return": (
        "try { return await mcp.fs.stat({}); } finally { await mcp.fs.read({}); }"
        " await mcp.git.status();",
        "n1 fs:stat, n2 fs:read, n3 git:status",
        "n1>n2",
    ),
    "finally on every way": (
        "try { await mcp.fs.stat({}); } catch { await mcp.fs.list({}); } finally { await mcp.fs.read({}); } await mcp.git.status();",
        "d1 try, n1 fs:stat, n2 fs:list, n3 fs:read, n4 git:status",
        "n1>d1 d1>n2:error d1>n3:ok n2>n3 d1>n3:error n3>n4",
    ),
    "finally that jumps itself": (
        "for (;;) { try { await mcp.fs.stat({}); } finally { break; } } await mcp.fs.read({});",
        "l1 for true, n1 fs:stat, n2 fs:read",
        "l1>>n1 n1>n2 l1>>n2",
    ),
    "Promise.all": (
        "await Promise.all([mcp.fs.stat({}), mcp.fs.read({})]); await mcp.git.status();",
        "f1 all, n1 fs:stat, n2 fs:read, n3 git:status",
        "f1>n1 f1>n2 n1>j1 n2>j1 j1>n3",
    ),
    "a callback": (
        "await Promise.all(files.map(async (f) => { await mcp.fs.read({ path: f }); return 1; })); await mcp.git.status();",
        "f1 all files, n1 fs:read, n2 git:status",
        "f1>n1 n1>j1 f1>j1 j1>n2",
    ),
    "a function called where it is written": (
        "(async (a) => { await mcp.fs.stat({}); })(await mcp.fs.read({}));",
        "n1 fs:stat, n2 fs:read",
        "n2>n1",
    ),
    "then": (
        "await mcp.fs.stat({}).then((s) => mcp.fs.read({ path: s.path })).catch(() => null);",
        "n1 fs:stat, n2 fs:read",
        "n1>n2",
    ),
    "named, arrow and generator functions, where they are written": (
        "function a() { return mcp.fs.stat({}); } const b = () => mcp.fs.read({});"
        " function* c() { yield mcp.fs.list({}); } const e = function named() { named(); };",
        "n1 fs:stat, n2 fs:read, n3 fs:list",
        "n1>n2 n1>n3 n2>n3",
    ),
    "classes and getters": (
        "class D { #x = mcp.git.status(); static { mcp.fs.create({}); }"
        " m(p = mcp.fs.write({})) {} } const o = { get g() { return mcp.fs.stat({}); } };",
        "n1 git:status, n2 fs:create, n3 fs:write, n4 fs:stat",
        "n1>n2 n2>n3 n2>n4 n3>n4",
    ),
}


@pytest.mark.parametrize(("code", "expected", "edges"), CASES.values(), ids=CASES)
def test_every_call_is_a_node_and_the_flow_is_drawn(code: str, expected: str, edges: str) -> None:
    analysis = analysed(code)
    assert nodes(analysis) == expected
    assert flow(analysis) == edges
    assert not analysis.dynamic_calls


def test_the_sources_example_comes_out_as_they_print_it() -> None:
    analysis = analysed(SOURCES_EXAMPLE)
    assert nodes(analysis) == "n1 fs:stat, d1 file.exists, n2 fs:read, n3 fs:create, n4 fs:write"
    assert flow(analysis) == "n1>d1 d1>n2:true d1>n3:false n3>n4"


def test_no_reference_means_no_provides_edge_whatever_schemas_would_fit() -> None:
    assert provided(analysed(SOURCES_EXAMPLE)) == ""
