"""Limits on the size of programs; time grows with length only."""

import time

import pytest

from libs.pml_local.tests.support.patience import SLOWNESS
from pml_analysis.analysis import Analysis, Rejection, analyze
from pml_analysis.text.limits import Limits
from pml_common.contracts.decision import Policy
from services.analyzer.tests.support.programs import (
    SOURCES_EXAMPLE,
    TOOLS,
    analysed,
    arguments,
    complaints,
    provided,
    task,
)


def test_a_program_over_the_limit_is_refused_with_the_limit_named() -> None:
    (told,) = complaints("x" * (256 * 1024 + 1))
    assert told.startswith("1:1 The program has 262,145 bytes; the limit is 262,144: pass data")


def test_a_program_of_very_many_signs_is_refused_with_the_limit_named() -> None:
    (told,) = complaints("a;" * 60_000)
    assert told == (
        "1:1 The program has 180,001 words and signs; the limit is 150,000: pass data as args, "
        "or split it."
    )


@pytest.mark.parametrize("code", ["{a:" * 50_000, "a:{" * 50_000, "f(" * 2_001 + ")" * 2_001])
def test_brackets_that_would_end_the_parser_are_refused_before_it_runs(code: str) -> None:
    (told,) = complaints(code)
    assert "This is nested too deeply" in told


def test_many_brackets_side_by_side_are_no_depth() -> None:
    assert analysed("return [" + "({}), " * 2_001 + "'))))((((', 1];")


def test_a_deep_text_that_does_not_parse_is_told_and_no_crash() -> None:
    assert complaints("<a/>;" * 50_000)[0].startswith("1:3 ")


def test_names_for_twice_a_name_do_not_fill_the_memory() -> None:
    doubled = "".join(
        f"const a{i + 1} = a{i} + a{i}; const b{i + 1} = `${{b{i}}}${{b{i}}}`;" for i in range(40)
    )
    start = "const a0 = 'aaaaaaaa', b0 = 'bbbbbbbb';"
    analysis = analysed(f"{start}{doubled} await mcp.fs.read({{ path: a40, limit: b40 }});")
    told = task(analysis, "n1").arguments
    assert {argument.type for argument in told.values()} == {"reference"}


def test_names_for_parts_of_names_do_not_fill_the_memory() -> None:
    parts = "".join(f"const a{i + 1} = a{i}.b;" for i in range(100))
    analysis = analysed(f"const a0 = args.a; {parts} await mcp.fs.read({{ path: a100 }});")
    assert arguments(analysis)["path"] == {
        "type": "reference",
        "expression": "a100",
        "node_id": None,
    }


def test_the_limit_counts_bytes() -> None:
    outcome = analyze("'é'", tools=(), policy=Policy(), limits=Limits(source_bytes=3))
    assert isinstance(outcome, Rejection)


@pytest.mark.parametrize(
    "code",
    [
        "(" * 10_000 + "1" + ")" * 10_000,
        "[" * 10_000 + "]" * 10_000,
        "{" * 10_000 + "}" * 10_000,
        "a." * 10_000 + "b",
        "1+" * 10_000 + "1",
        "f(" * 10_000 + ")" * 10_000,
        "()=>" * 10_000 + "1",
        "if (1) " * 10_000 + "1;",
        "if (1) {} else " * 5_000 + "{}",
        "'é';" + "(" * 600 + "1" + ")" * 600,
        "a: " * 200 + "for (;;) mcp.fs.read({});",
        "for (;;) " * 200 + "mcp.fs.read({});",
        "if (1) {} else " * 200 + "mcp.fs.read({});",
    ],
)
def test_deep_nesting_is_a_clear_error_and_no_crash(code: str) -> None:
    outcome = analyze(code, tools=TOOLS, policy=Policy())
    assert isinstance(outcome, Rejection)
    assert outcome.diagnostics[0].message.startswith("This is nested too deeply")


@pytest.mark.parametrize(
    "code",
    [
        "return " + "(" * 200 + "1" + ")" * 200 + ";",
        "return " + "[" * 400 + "]" * 400 + ";",
        "return 1" + " + 1" * 400 + ";",
        "return a" + ".b" * 400 + ";",
        "const s = 'a'" + " + 'a'" * 400 + "; mcp[s].x();",
        "mcp.fs.read({ a: " + "[" * 200 + "1" + "]" * 200 + " });",
        "mcp.fs.read({ a: " + "{ a: " * 200 + "b" + "}" * 200 + " });",
        "mcp.fs.read({})" + ".then((x) => x)" * 240,
        "a" + " ? 1 : a" * 100 + " ? mcp.fs.read({}) : 1;",
        "()=>" * 140 + "mcp.fs.read({});",
        "for (const a of b) " * 140 + "mcp.fs.read({});",
        "a && (" * 140 + "mcp.fs.read({})" + ")" * 140,
        "try { " * 140 + "mcp.fs.read({})" + "} finally { f(); }" * 140 + "function f() {}",
        "for (const a of await mcp.fs.list({})) " * 140 + "mcp.fs.read({});",
        "if (a) {} else " * 140 + "mcp.fs.read({});",
        "switch (a) { default: " * 140 + "mcp.fs.read({})" + "}" * 140,
        "a: {" * 140 + "mcp.fs.read({})" + "}" * 140,
    ],
)
def test_nesting_within_the_limits_is_followed_to_the_end(code: str) -> None:
    assert isinstance(analyze(code, tools=TOOLS, policy=Policy()), Analysis)


def test_more_nodes_than_a_person_can_approve_are_refused() -> None:
    (told,) = complaints("mcp.fs.read({});\n" * 1_001)
    assert told == (
        "1001:1 More than 1,000 calls and decisions, those of functions counted once for each way "
        "they are invoked: that is too many to approve; split it."
    )


def test_more_ways_than_can_be_drawn_are_refused() -> None:
    (told,) = complaints("a?.b(mcp.fs.read({}));\n" * 200)
    assert "more paths through this than 10,000 edges" in told


def test_ways_back_count_too() -> None:
    code = "for (const a of b) { if (a.x) continue; if (a.y) continue; await mcp.fs.read({}); }"
    assert isinstance(analyze(code, tools=TOOLS, policy=Policy(), limits=Limits(edges=6)), Analysis)
    outcome = analyze(code, tools=TOOLS, policy=Policy(), limits=Limits(edges=5))
    assert isinstance(outcome, Rejection)


def test_functions_that_invoke_each_other_too_far_are_refused() -> None:
    chain = "".join(f"function f{i}() {{ return f{i + 1}(); }}\n" for i in range(120))
    (told,) = complaints(f"{chain}function f120() {{ return mcp.fs.read({{}}); }}\nf0();")
    assert told.startswith("100:")
    assert "too deep" in told


def test_invocations_that_multiply_are_refused_before_they_take_time() -> None:
    doubling = "".join(f"function f{i}() {{ f{i + 1}(); f{i + 1}(); }}\n" for i in range(40))
    (told,) = complaints(f"{doubling}function f40() {{ mcp.fs.read({{}}); }}\nf0();")
    assert "once for each way they are invoked" in told
    (told,) = complaints("const f = () => mcp.fs.read({});\n" + "f();" * 1_001)
    assert "once for each way they are invoked" in told


def test_arguments_that_multiply_are_refused_with_the_limit_named() -> None:
    text = f"const big = '{'x' * 200_000}';"
    assert arguments(analysed(f"{text} mcp.fs.read({{ path: big }});"))
    calls = "\nmcp.fs.read({ path: big });" * 900
    for code in (text + calls, f"function f(big) {{{calls} }}\nf('{'x' * 200_000}');"):
        (told,) = complaints(code)
        assert told.endswith(
            "The arguments of all calls have more than 1,048,576 characters, those in names and "
            "functions counted for each call: that is too much to approve; pass data as args."
        )
        assert told.startswith("7:")


def test_results_that_feed_more_calls_than_can_be_drawn_are_refused() -> None:
    feeding = "const a = await mcp.fs.list({}); const b = await mcp.fs.list({});"
    fed = "await mcp.fs.read({ path: [a, b] });" * 2
    outcome = analyze(feeding + fed, tools=TOOLS, policy=Policy(), limits=Limits(edges=3))
    assert isinstance(outcome, Rejection)
    assert "more paths through this than 3 edges" in outcome.diagnostics[0].message


def test_results_are_followed_through_many_names_but_not_endlessly() -> None:
    def through(count: int) -> str:
        names = "".join(f"const x{i + 1} = String(x{i});" for i in range(count))
        return f"const x0 = await mcp.fs.list({{}}); {names} mcp.fs.read({{ path: x{count} }});"

    assert provided(analysed(through(200))) == "n1>n2:strict"
    assert provided(analysed(through(300))) == ""


def test_time_grows_with_length_only() -> None:
    def cpu_seconds(copies: int) -> float:
        code = "".join("{" + SOURCES_EXAMPLE + "}" for _ in range(copies))
        times: list[float] = []
        for _ in range(3):
            began = time.process_time()
            analysed(code)
            times.append(time.process_time() - began)
        return min(times)

    assert cpu_seconds(64) < 3 * 8 * cpu_seconds(8)  # waits: a ratio of paired processor times


REPEATED = {
    "names": "a;",
    "calls": "f();",
    "tools": "mcp.fs.read;",
    "calls of tools": "mcp.fs.read({});",
    "calls of unknown tools": "mcp[a].b();",
    "members": "a.b;",
    "writes": "x.y=1;",
    "declarations": "let a;",
    "blocks": "{let a=a}",
    "functions": "function f(){}",
    "arrows": "()=>1;",
    "patterns": "[a,b]=c;",
    "objects": "({a:1});",
    "templates": "`${a}`;",
    "tags": "f`a`;",
    "escaped names": "\\u0061;",
    "look-alikes": "\u0430;",
    "labels": "a:;",
    "breaks": "break;",
    "returns": "return 1;",
    "unreached calls": "return;mcp.fs.read({});",
    "results too early": "mcp.fs.read({}).a;",
    "forbidden names": "eval;",
    "forbidden keys": "({__proto__:1});",
    "constructors": "a.constructor;",
    "prototypes": "Array.prototype.x=1;",
    "unseen characters": "'\u200b';",
    "overrides": "'\u202e';",
    "isolates": "'\u2066\u2069';",
    "missing tools": "mcp.f\u0455.read({});",
    "imports": "import'a';",
    "errors": "const = ;",
    "open brackets": "(",
    "open objects": "({a,",
    "closed elements": "</a>",
    "elements": "<a/>;",
}


@pytest.mark.no_cover
@pytest.mark.parametrize("unit", REPEATED.values(), ids=REPEATED)
def test_a_whole_program_of_one_construct_is_answered_in_bounded_time(unit: str) -> None:
    """Ten seconds of processor time are ten times the slowest's; quadratic time is far above."""
    began = time.process_time()
    analyze(unit * (256 * 1024 // len(unit.encode())), tools=TOOLS, policy=Policy())
    assert time.process_time() - began < 10 * SLOWNESS  # waits: see above
