"""The tools that calls reach, through names, parts and choices; and dynamic calls."""

import pytest

from services.analyzer.tests.support.programs import analysed, complaints, nodes, rejected

READS = "n1 fs:read"
RESOLVED = {
    "plainly": "mcp.fs.read({})",
    "keys in brackets": 'mcp["fs"]["read"]({})',
    "keys in templates": "mcp[`fs`][`read`]({})",
    "keys in names": "const s = 'fs'; const t = 're' + 'ad'; mcp[s][t]({})",
    "escaped names": "mcp.f\\u0073.read({})",
    "escaped keys": 'mcp["f\\x73"]["r\\u{65}ad"]({})',
    "by name": 'mcp.call("fs:read", {})',
    "by a constant name": "const name = 'fs:read'; mcp['call'](name, {})",
    "an alias": "const read = mcp.fs.read; read({})",
    "aliases of aliases": "const m = mcp, f = m.fs, r = f.read; r({})",
    "an alias declared later": "go(); function go() { return f.read({}); } const f = mcp.fs;",
    "destructured": "const { fs } = mcp; fs.read({})",
    "destructured and renamed": "const { fs: { read: r } } = mcp; r({})",
    "destructured by a text": "const { 'fs': { ['read']: r } } = mcp; r({})",
    "the rest of a destructuring": "const { git, ...others } = mcp; others.fs.read({})",
    "assigned later": "let r; r = mcp.fs.read; r({})",
    "assigned by a pattern": "let r; ({ read: r } = mcp.fs); r({})",
    "assigned in parentheses": "let r; (r) = mcp.fs.read; r({})",
    "assigned where it is used": "let r; (r = mcp.fs.read)({})",
    "null until assigned": "let r = null; if (a) { r = mcp.fs.read; } r({})",
    "the same on both sides": "const r = a ? mcp.fs.read : mcp['fs'].read; r({})",
    "a logical assignment": "let r; r ??= mcp.fs.read; r({})",
    "through a sequence": "(0, mcp.fs.read)({})",
    "call kept by a name": "const call = mcp.call; call('fs:read', {})",
    "a var of an inner block": "{ var r = mcp.fs.read; } r({})",
    "a name that refers to itself": "var a = b; var b = a; b = mcp.fs.read; mcp.fs.read({})",
    "a default that a parameter of the same name hides not": (
        "const f = (a = mcp.fs.read({})) => { var mcp = 1; return mcp; }; f()"
    ),
}


@pytest.mark.parametrize("code", RESOLVED.values(), ids=RESOLVED)
def test_a_call_is_traced_to_its_tool(code: str) -> None:
    analysis = analysed(code)
    assert READS in nodes(analysis)
    assert not analysis.dynamic_calls


DYNAMIC = {
    "unknown keys": ("mcp[a][b]({})", "mcp[a][b]({})"),
    "an unknown tool": ("mcp.fs[a]({})", "mcp.fs[a]({})"),
    "an unknown name": ("mcp.call(a, {})", "mcp.call(a, {})"),
    "no name": ("mcp.call()", "mcp.call()"),
    "a name in a spread": ("mcp.call(...a)", "mcp.call(...a)"),
    "one of two tools": (
        "(a ? mcp.fs.read : mcp.fs.stat)({})",
        "(a ? mcp.fs.read : mcp.fs.stat)({})",
    ),
    "a name of two tools": ("let r = mcp.fs.read; r = mcp.fs.stat; r({})", "r({})"),
    "a tool or something else": ("let r = () => 1; if (a) r = mcp.fs.read; r({})", "r({})"),
    "a parameter's default": ("const f = (s = mcp.fs) => s.read({}); f()", "s.read({})"),
    "a default in a pattern": ("const { r = mcp.fs.read } = args; r({})", "r({})"),
    "a computed key in a pattern": ("const { [a]: s } = mcp; s.read({})", "s.read({})"),
    "a place in a pattern": ("const [s] = mcp; s.read({})", "s.read({})"),
    "an item of mcp": ("for (const s of mcp) s.read({})", "s.read({})"),
    "a method of a tool": ("mcp.fs.read.call(null, {})", "mcp.fs.read.call(null, {})"),
    "a method of mcp.call": ("mcp.call.bind(null)('fs:read')", "mcp.call.bind(null)"),
    "a loop of names": ("let a = mcp.fs, b = a; a = b; b.read({})", "b.read({})"),
    "handed to a function": ("const f = (x) => x; f(mcp.fs.read)", "mcp.fs.read"),
    "handed on by a name": ("const f = (x) => x; const r = mcp.fs; f(r)", "r"),
    "kept in an object": ("const o = { fs: mcp.fs }; o.fs.read({})", "mcp.fs"),
    "kept by shorthand": ("const o = { mcp }; o.mcp.fs.read({})", "mcp"),
    "kept in a list": ("const l = [mcp.fs.read]; l[0]({})", "mcp.fs.read"),
    "kept in a member": ("const o = {}; o.r = mcp.fs.read; o.r({})", "o.r"),
    "kept in a member by a pattern": ("const o = {}; [o.r = mcp] = []; o.r()", "o.r"),
    "kept in a member by ??=": ("const o = {}; o.r ??= mcp.fs.read; o.r({})", "o.r"),
    "kept in a member by a loop": ("const o = {}; for (o.s of mcp) o.s.read({})", "o.s"),
    "kept in a field": ("class A { fs = mcp.fs; }", "mcp.fs"),
    "returned": ("const f = () => mcp.fs; return f().read({})", "mcp.fs"),
    "returned at last": ("return mcp;", "mcp"),
    "spread": ("const o = { ...mcp.fs };", "mcp.fs"),
    "a constructor": ("new mcp.fs.read({})", "mcp.fs.read"),
    "written": ("mcp.fs.read = 1;", "mcp.fs.read"),
    "asked about by a class": ("class A {} mcp.fs instanceof A;", "mcp.fs"),
    "handed to a tag": ("const f = (t, x) => x; f`${mcp.fs}`;", "mcp.fs"),
    "a var of a parameter's name": ("const f = (r) => { var r = mcp.fs.read; r() }", "r()"),
    "a var of a catch": ("try {} catch (e) { var e = mcp.fs; e.read({}) }", "e.read({})"),
    "deleted": ("delete mcp.fs;", "mcp.fs"),
    "chosen and handed on": ("const f = (x) => x; f(a || mcp.fs)", "a || mcp.fs"),
    "awaited and handed on": ("const f = (x) => x; f(await mcp)", "await mcp"),
    "assigned and handed on": ("let r; const f = (x) => x; f((r = mcp.fs))", "(r = mcp.fs)"),
    "after a comma, handed on": ("const f = (x) => x; f((0, mcp.fs))", "(0, mcp.fs)"),
}


@pytest.mark.parametrize(("code", "expression"), DYNAMIC.values(), ids=DYNAMIC)
def test_what_only_the_run_can_tell_is_reported_and_asked_for(code: str, expression: str) -> None:
    analysis = analysed(code)
    assert expression in [call.expression for call in analysis.dynamic_calls]
    assert analysis.decision.verdict == "ask"
    assert any("known only when it runs" in reason for reason in analysis.decision.reasons)


def test_a_dynamic_call_has_its_place() -> None:
    (call,) = analysed("const s = args.s;\n  await mcp[s].read({});").dynamic_calls
    assert (call.line, call.column, call.expression) == (2, 9, "mcp[s].read({})")


HARMLESS = {
    "a local called mcp": "const f = (mcp) => mcp.fs.read({}); f({})",
    "a local var called mcp": "const f = () => { mcp = 1; { var mcp; } return mcp; }; f()",
    "a catch called mcp": "try {} catch (mcp) { mcp.fs.read({}) }",
    "a class called mcp": "{ class mcp {} new mcp(); }",
    "a function called mcp": "{ function mcp() {} mcp(); }",
    "an enum called mcp": "{ enum mcp { A } mcp.A; }",
    "a property called mcp": "const o = {}; o.mcp?.fs?.read?.({})",
    "tests for presence": "if (mcp.fs) {} while (!mcp) {} typeof mcp.fs; 'fs' in mcp; `${mcp.fs}`",
    "a statement that does nothing": "mcp.fs; mcp, 1; void mcp; for (const k in mcp) {}",
    "a condition": "const x = mcp.fs ? 1 : 2; for (; mcp; ) {} do {} while (mcp); args[mcp]",
    "an alias that is never called": "const r = mcp.fs.read; let s = mcp; s = mcp.fs;",
    "a parameter called this": "function f(this: typeof mcp, a) { return a; } f(1)",
    "in types": "const x: typeof mcp.fs = 1; type T = typeof mcp; (x as typeof mcp);",
}


@pytest.mark.parametrize("code", HARMLESS.values(), ids=HARMLESS)
def test_what_calls_nothing_is_no_call(code: str) -> None:
    analysis = analysed(code)
    assert "fs:read" not in nodes(analysis)
    assert not analysis.dynamic_calls


REFUSED = {
    "a server is no tool": ("mcp.fs({})", "1:1 fs is a server, not a tool: call mcp.fs.<tool>(…)."),
    "mcp is no tool": (
        "mcp({})",
        "1:1 mcp is not a tool: call one of its servers' tools, mcp.<server>.<tool>(…).",
    ),
    "a name without a server": (
        "mcp.call('read')",
        "1:1 read is no tool: write mcp.fs.read(…).",
    ),
}


@pytest.mark.parametrize(("code", "complaint"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_a_tool_is_refused(code: str, complaint: str) -> None:
    assert complaints(code) == [complaint]


def test_a_chain_of_names_too_long_to_follow_is_taken_for_a_tool() -> None:
    names = "".join(f"var a{i} = a{i + 1};" for i in range(100))
    analysis = analysed(f"{names} var a100 = mcp.fs; a0.read({{}})")
    assert [call.expression for call in analysis.dynamic_calls] == ["a0.read({})"]


def test_a_long_chain_of_names_in_order_is_followed() -> None:
    names = "".join(f"const a{i + 1} = a{i};" for i in range(300))
    assert nodes(analysed(f"const a0 = mcp.fs; {names} a300.read({{}})")) == READS


@pytest.mark.parametrize(
    "code", ["mcp.fs['\\ud800']({})", "mcp['\\ud800']({})", "capabilities['\\ud800']({})"]
)
def test_half_a_character_in_a_name_is_told_by_number(code: str) -> None:
    (told,) = rejected(code).diagnostics
    assert "\\ud800" in told.model_dump_json().replace("\\\\", "\\")
