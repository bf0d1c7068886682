"""Places where a program reads the names of servers and tools."""

import pytest

from pml_analysis.analysis import Analysis, analyze
from pml_analysis.decision.toolbox import Tools
from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.tool import QuarantinedTool
from services.analyzer.tests.support.library import calling, described, library
from services.analyzer.tests.support.programs import TOOLS, analysed, nodes, submitted, tool

SERVERS = '{ __proto__: null, ["fs"]: 0, ["git"]: 0, ["http"]: 0, ["json"]: 0, ["server-x"]: 0 }'
GIT = '{ __proto__: null, ["status"]: 0 }'

LISTED = {
    "Object.keys": ("return Object.keys(mcp);", "return Object.keys((mcp, {0}));", SERVERS),
    "of a server": (
        "return Object.keys(mcp.git);",
        "return Object.keys((mcp.git, {0}));",
        GIT,
    ),
    "of a server under a name": (
        "const g = mcp.git; return Object.keys(g);",
        "const g = mcp.git; return Object.keys((g, {0}));",
        GIT,
    ),
    "of a server in a pattern": (
        "const { git } = mcp; return Object.keys(git);",
        "const { git } = mcp; return Object.keys((git, {0}));",
        GIT,
    ),
    "own names": (
        'return Object["getOwnPropertyNames"](mcp["git"]);',
        'return Object["getOwnPropertyNames"]((mcp["git"], {0}));',
        GIT,
    ),
    "Reflect.ownKeys": (
        "return Reflect.ownKeys(mcp);",
        "return Reflect.ownKeys((mcp, {0}));",
        SERVERS,
    ),
    "Object.hasOwn": (
        "return Object.hasOwn(mcp.git, args.tool);",
        "return Object.hasOwn((mcp.git, {0}), args.tool);",
        GIT,
    ),
    "Reflect.has": (
        "return Reflect.has(mcp, 'fs');",
        "return Reflect.has((mcp, {0}), 'fs');",
        SERVERS,
    ),
    "in": ("return 'fs' in mcp;", "return 'fs' in (mcp, {0});", SERVERS),
    "in a cast": ("return 'fs' in (mcp as any);", "return 'fs' in ((mcp as any), {0});", SERVERS),
    "for in": (
        "const all = []; for (const t in mcp.git) all.push(t);",
        "const all = []; for (const t in (mcp.git, {0})) all.push(t);",
        GIT,
    ),
    "no such server": (
        "return Object.keys(mcp.nothing);",
        "return Object.keys((mcp.nothing, {0}));",
        "{ __proto__: null }",
    ),
}


@pytest.mark.parametrize(("text", "runs", "names"), LISTED.values(), ids=LISTED)
def test_names_are_read_from_the_list_of_the_analysis(text: str, runs: str, names: str) -> None:
    outcome = submitted(text)
    assert outcome == analysed(text)
    assert (outcome.code, outcome.dynamic_calls, outcome.notices) == (text, (), ())
    assert outcome.decision.verdict == "allow"
    assert "n1" not in nodes(outcome)
    free = "const { nothing } = args; " if outcome.free else ""
    assert outcome.instrumented == f"const __pml_names = [{names}]; {free}" + runs.replace(
        "{0}", "__pml_names[0]"
    )
    assert outcome.reads_catalog


def test_each_list_is_there_once() -> None:
    text = "return [Object.keys(mcp.git), Object.keys(mcp), 'a' in mcp.git];"
    runs = analysed(text).instrumented
    assert runs.startswith(f"const __pml_names = [{GIT}, {SERVERS}]; return ")
    assert [runs.count(f"__pml_names[{n}]") for n in (0, 1)] == [2, 1]


def test_the_tools_of_a_server_known_when_it_runs_are_read_from_the_lists_of_all() -> None:
    text = "const all = Object.keys(mcp).map((s) => Object.keys(mcp[s])); return [all, X];"
    text = text.replace("X", "'a' in mcp?.[args.s]")
    outcome = analysed(text)
    assert not outcome.dynamic_calls
    assert outcome.decision.verdict == "allow"
    table, runs = outcome.instrumented.split("]; const all = ")
    assert table.startswith(f'const __pml_names = [{SERVERS}, {{ __proto__: null, ["fs"]: {{')
    assert f'["git"]: {GIT}, ' in table
    assert "Object.keys(((mcp, __pml_names[1])[s] ?? {}))" in runs
    assert "'a' in ((mcp, __pml_names[1])?.[args.s] ?? {})" in runs


@pytest.mark.parametrize("text", [text for text, _, _ in LISTED.values()])
def test_what_runs_is_the_text_with_insertions(text: str) -> None:
    outcome = analysed(f"\n{text}")
    kept, at = "", 0
    for start, end in outcome.insertions:
        assert at <= start < end
        kept, at = kept + outcome.instrumented[at:start], end
    assert kept + outcome.instrumented[at:] == f"\n{text}"


ASKED = {
    "values": "return Object.values(mcp.git);",
    "entries": "return Object.entries(mcp.git);",
    "an own Object": "const Object = args.o; return Object.keys(mcp);",
    "a function of the program": "const keys = (o) => o; return keys(mcp);",
    "another object's keys": "return args.o.keys(mcp);",
    "another function": "return Object.freeze(mcp);",
    "keys under a name": "const { keys } = Object; return keys(mcp);",
    "a spread": "return Object.keys(...mcp);",
    "too many": "return Object.keys(mcp, 1);",
    "too few": "return Object.hasOwn(mcp);",
    "an assigned part": "let g; return Object.keys((g = mcp.git));",
    "a choice": "return Object.keys(args.n ? mcp.git : mcp.fs);",
    "a tool": "return Object.keys(mcp.git.status);",
    "capabilities": "return Object.keys(capabilities);",
    "capabilities by their server": "return Object.keys(mcp.cap);",
    "a part of a part known when it runs": "return Object.keys(mcp[args.server].read);",
    "a tool known when it runs": "return Object.keys(mcp.git[args.tool]);",
    "a part of a choice": "const m = args.n ? mcp : mcp.fs; return Object.keys(m[args.n]);",
}


@pytest.mark.parametrize("text", ASKED.values(), ids=ASKED)
def test_any_other_reading_is_asked_for_as_before(text: str) -> None:
    outcome = analysed(text)
    assert "__pml_names" not in outcome.instrumented
    assert outcome.dynamic_calls
    assert outcome.decision.verdict == "ask"
    assert not outcome.reads_catalog


def test_a_private_field_is_none_of_mcp() -> None:
    text = "class A { #x = 1; static of(o) { return #x in mcp; } } return A;"
    assert "__pml_names" not in analysed(text).instrumented


def test_a_call_by_a_name_that_was_read_asks_as_before() -> None:
    outcome = analysed("for (const t in mcp.git) await mcp.git[t]({});")
    assert [call.expression for call in outcome.dynamic_calls] == ["mcp.git[t]({})"]
    assert outcome.decision.verdict == "ask"


def test_names_are_those_that_clients_are_shown() -> None:
    rules = (
        PolicyRule(pattern="fs:write", verdict="deny"),
        PolicyRule(pattern="git:*", verdict="deny"),
    )
    text = "return [Object.keys(mcp), Object.keys(mcp.fs), Object.keys(mcp.git)];"
    runs = analysed(text, Policy(rules=rules)).instrumented
    assert '["write"]' not in runs
    assert '["read"]' in runs
    assert '["git"]' not in runs
    assert runs.startswith('const __pml_names = [{ __proto__: null, ["fs"]: 0, ["http"]: 0,')
    held = QuarantinedTool(server="fs", name="held", changed=("title",), definition_hash="ab" * 32)
    outcome = analyze(text, tools=Tools(TOOLS, [held]), policy=Policy())
    assert isinstance(outcome, Analysis)
    assert "held" not in outcome.instrumented


def test_names_cannot_leave_their_texts() -> None:
    odd = ('a"]: 0 }]; evil(); [{["', "__proto__", "then", "line\u2028end")
    tools = tuple(tool("fs:x").model_copy(update={"name": name}) for name in odd)
    outcome = analyze("return Object.keys(mcp.fs);", tools=tools, policy=Policy())
    assert isinstance(outcome, Analysis)
    told = '["a\\"]: 0 }]; evil(); [{[\\""]: 0'
    assert outcome.instrumented.startswith(
        f'const __pml_names = [{{ __proto__: null, ["__proto__"]: 0, {told}'
    )
    assert "\u2028" not in outcome.instrumented


def test_capabilities_read_the_names_of_their_caller() -> None:
    all_names = described("names:all", "return Object.keys(mcp);")
    known = library(all_names, described("names:none", "return 1;"))
    outcome = calling("return await capabilities.names_all({});", known)
    (one,) = outcome.injected
    assert (
        one.instrumented
        == f"const __pml_names = [{SERVERS}]; return Object.keys((mcp, __pml_names[0]));"
    )
    assert one.insertions[0] == (0, one.instrumented.index("return"))
    assert outcome.decision.verdict == "allow"
    denied = Policy(rules=(PolicyRule(pattern="fs:*", verdict="deny"),))
    (one,) = calling("return await capabilities.names_all({});", known, denied).injected
    assert '["fs"]' not in one.instrumented
    (one,) = calling("return await capabilities.names_none({});", known).injected
    assert one.instrumented == "return 1;"


def test_the_hash_of_a_program_does_not_depend_on_the_tools() -> None:
    text = "return Object.keys(mcp);"
    outcome = analyze(text, tools=(), policy=Policy())
    assert isinstance(outcome, Analysis)
    assert outcome.instrumented.startswith("const __pml_names = [{ __proto__: null }]; ")
    assert outcome.code_hash == analysed(text).code_hash
