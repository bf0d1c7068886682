"""Programs that end without their result: functions that nobody calls, trailing expressions."""

import pytest

from services.analyzer.tests.support.programs import (
    analysed,
    arguments,
    flow,
    nodes,
    submitted,
    submitted_complaints,
    task,
)

READ = 'await mcp.fs.read({ path: "a" })'

CALLED = {
    "an arrow function": (
        f"async () => {{ return {READ}; }}",
        f"return await (async () => {{ return {READ}; }})()",
    ),
    "with a semicolon": (f"async () => {READ};\n", f"return await (async () => {READ})();\n"),
    "in parentheses": (f"(async () => {READ})", f"return await ((async () => {READ}))()"),
    "an anonymous function": (
        f"async function () {{ return {READ} }}",
        f"return await (async function () {{ return {READ} }})()",
    ),
    "after definitions": (
        f"const path = 'a';\nasync () => {READ}",
        f"const path = 'a';\nreturn await (async () => {READ})()",
    ),
    "before definitions": (
        f"(async () => await read());\nasync function read() {{ return {READ} }}",
        f"return await ((async () => await read()))();\nasync function read() {{ return {READ} }}",
    ),
    "after a directive": ("'use strict'; () => 1", "'use strict'; return await (() => 1)()"),
    "after a call": (f"{READ};\n() => 1", f"{READ};\nreturn await (() => 1)()"),
    "a declared function": (
        f"async function run() {{ return {READ}; }}\n// done\n",
        f"async function run() {{ return {READ}; }}; return await run();\n// done\n",
    ),
    "a named arrow function": (
        f"const run = async () => {READ}",
        f"const run = async () => {READ}; return await run();",
    ),
    "the last one": (
        "function a() {}\nfunction b() {}",
        "function a() {}\nfunction b() {}; return await b();",
    ),
    "the only one that nobody calls": (
        "function main() { return one(); }\nfunction one() { return 1; }\nconst limit = 3;",
        "function main() { return one(); }\nfunction one() { return 1; }\nconst limit = 3;"
        "; return await main();",
    ),
    "one that calls itself": (
        "function run(n) { return n.deep ? run(n.deep) : 1; }",
        "function run(n) { return n.deep ? run(n.deep) : 1; }; return await run(args);",
    ),
    "between types": (
        "type A = { a: string };\nfunction run() { return 1; }\ninterface B { b: string }",
        "type A = { a: string };\nfunction run() { return 1; }\ninterface B { b: string }"
        "; return await run();",
    ),
    "after a call in a definition": (
        f"const read = {READ};\nconst run = () => read;",
        f"const read = {READ};\nconst run = () => read;; return await run();",
    ),
}
GIVEN = {
    "a parameter": ("async (args) => 1", "args"),
    "a parameter without parentheses": ("input => 1", "args"),
    "a pattern": ("({ path }) => 1", "args"),
    "an optional one": ("(input?: { path: string }) => 1", "args"),
    "a pattern with a default": ("({ path } = {}) => 1", "args"),
    "one with a default": ("(n = 5) => 1", ""),
    "all that are left": ("(...all) => 1", ""),
    "both names": ("(args, context) => 1", "args, args"),
    "tools": ("(mcp) => 1", "mcp"),
    "tools and arguments": ("(mcp, params) => 1", "mcp, args"),
    "arguments and tools": ("(input, mcp) => 1", "args, mcp"),
    "tools in a pattern": ("({ mcp, path }) => 1", "{ ...args, mcp }"),
    "both in a pattern": (
        "({ mcp, capabilities: own }) => own && capabilities",
        "{ ...args, mcp }",
    ),
    "own args": ("const args = 1; (input) => 1", "context"),
}
RETURNED = {
    "what is made of a result": f"const r = JSON.parse({READ});\nr",
    "results that were waited for": (
        "const r = await Promise.all(args.list.map(async (path) => mcp.fs.read({ path })));\nr"
    ),
    "a part of results that were waited for": (
        "(await Promise.all(args.list.map((path) => mcp.fs.read({ path })))).flat()"
    ),
    "a name": f"const r = {READ};\nr",
    "an object": f"const r = {READ};\n({{ r }});",
    "a member": f"const r = {READ}; r.content",
    "a text": f"{READ}; `read`",
    "a call": READ,
    "a call of another name": 'const { call } = mcp; await call("fs:read", {})',
    "a call only known at run time": "await mcp[args.server].read({})",
    "a tool with a name of an effect": "await mcp.fs.create({}); await mcp['fs'].write({})",
    "a local function": f"const read = async () => {READ};\nawait read();",
    "a function declared below": f"await read()\nasync function read() {{ return {READ} }}",
    "a chain": "await mcp.fs.read({}).then((r) => r.content)",
    "several": f"await Promise.all([{READ}])",
    "a function called at once": f"await (async () => {READ})()",
    "what a function of the language gives": f"const r = {READ}; JSON.stringify(r)",
    "an item": f"const r = {READ}; r[0]()",
    "a condition": f"args.path && {READ}",
    "a choice": f"args.path ? {READ} : null",
    "the last of several": f"1, {READ}",
    "a cast": f"({READ} as any)!",
    "a comparison": f"({READ}) === 1",
}
LEFT = {
    "a list of promises": (
        "const jobs = args.list.map((path) => mcp.fs.read({ path })); await Promise.all(jobs); jobs"
    ),
    "a list of promises of async functions": (
        "args.list.map(async (path) => await mcp.fs.read({ path }))"
    ),
    "a promise under a name": f"const r = {READ.removeprefix('await ')}; await r; r",
    "the name of a function": f"async function main() {{ {READ}; }}\nmain;",
    "a return": f"return {READ};",
    "a return on one path": f"if (args.path) return 1;\n{READ};",
    "no call": "1 + 1",
    "no expression": f"const r = {READ};",
    "a branch": f"if (args.path) {READ};",
    "a loop": f"for (const path of args.paths) {READ};",
    "a function among statements": f"{READ};\nconst f = () => 1;",
    "an assignment": f"let r; r = {READ};",
    "an addition": f"let r = 0; r += {READ};",
    "a count": f"let n = 0; {READ}; n++;",
    "a deletion": f"const r = {READ}; delete r.a;",
    "nothing": f"{READ}; undefined;",
    "null": f"args.path ? {READ} && null : undefined",
    "void": f"void {READ};",
    "a new object": f"new Date({READ});",
    "a log": f"console.log({READ});",
    "a log of a condition": f"const r = {READ}; r && console.log(r);",
    "a push": f"const all = []; all.push({READ});",
    "a timer": f"const r = {READ}; setTimeout(() => r, 1);",
    "a promise that nothing waits for": f"const read = async () => {READ};\nread();",
    "a tool that nothing waits for": "mcp.fs.read({});",
    "a generator": "function* run() { yield 1; }",
    "a class": "class Run { go() { return 1; } }",
    "functions that call each other": "function a() { b(); }\nfunction b() { a(); }",
    "a function that is used": "function a() {}\nconst all = [a];",
    "a function with more parameters": "function add(a, b) { return a + b; }",
    "no name for the arguments": "const args = 1, context = 2; (input) => 1",
    "a function that is written": "var run = () => 1, run = () => 2;",
    "a destructured definition": "const [run] = [() => 1];",
    "types": "type A = string;",
    "several functions that nobody calls": "function a() {}\nfunction b() {}\nconst n = 1;",
}


@pytest.mark.parametrize(("text", "code"), CALLED.values(), ids=CALLED)
def test_a_function_that_nobody_calls_is_called(text: str, code: str) -> None:
    outcome = submitted(text)
    assert outcome.code == code
    (notice,) = outcome.notices
    assert "which nobody called" in notice or "that nobody called" in notice
    assert notice.endswith("Send the body of an async function: statements that end with return.")


@pytest.mark.parametrize(("text", "given"), GIVEN.values(), ids=GIVEN)
def test_a_function_is_given_the_arguments_that_it_takes(text: str, given: str) -> None:
    outcome = submitted(text)
    assert outcome.code.endswith(f")({given})")
    assert (f"it was called with {given}." if given else "it was called.") in outcome.notices[0]


def test_globals_that_the_program_declares_are_no_globals() -> None:
    assert submitted("const mcp = 1; ({ mcp }) => 1").code.endswith("=> 1)(args)")


@pytest.mark.parametrize("text", RETURNED.values(), ids=RETURNED)
def test_the_last_expression_after_a_call_is_the_result(text: str) -> None:
    outcome = submitted(text)
    ((start, end),) = outcome.inserted
    assert outcome.code[start:end] == "return "
    assert outcome.code[:start] + outcome.code[end:] == text
    (notice,) = outcome.notices
    assert notice.endswith("is its result: write return before it.")


@pytest.mark.parametrize("text", RETURNED.values(), ids=RETURNED)
def test_a_returned_expression_makes_the_same_calls_in_the_same_order(text: str) -> None:
    before, after = analysed(text), submitted(text)
    assert nodes(after) == nodes(before)
    assert flow(after) == flow(before)
    assert after.dynamic_calls == before.dynamic_calls


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_any_other_program_is_left_as_it_is(text: str) -> None:
    assert submitted(text) == analysed(text)


def test_the_result_is_named_by_its_line() -> None:
    (notice,) = submitted(f"const r = {READ};\n\nr").notices
    assert "the value of its last expression (line 3) is its result" in notice


def test_an_object_without_parentheses_is_refused_as_before() -> None:
    (complaint,) = submitted_complaints(f"const r = {READ};\n{{ r: r }}")
    assert complaint.startswith("2:1 What begins with { is a block here")


def test_a_program_without_statements_is_refused_as_before() -> None:
    (complaint,) = submitted_complaints("// nothing")
    assert "The program is empty" in complaint


def test_the_parameters_of_a_called_function_are_those_of_the_program() -> None:
    for text in (
        "async (input) => await mcp.fs.read({ path: input.path })",
        "async function run({ path }) { return await mcp.fs.read({ path }); }",
    ):
        assert submitted(text).parameters_schema["required"] == ["path"]
    named = "async function run(input) { return await mcp.fs.read({ path: input.path }); }"
    assert arguments(submitted(named))["path"] == {
        "type": "parameter",
        "parameter_name": "path",
        "path": ["path"],
    }


def test_a_completed_program_is_the_same_behaviour_as_one_written_so() -> None:
    outcome = submitted(f"const r = {READ};\nr")
    assert outcome.code_hash == analysed(f"const r = {READ};\nreturn r;").code_hash


@pytest.mark.parametrize("text", [text for text, _ in CALLED.values()] + [*RETURNED.values()])
def test_positions_are_those_of_the_text_as_sent(text: str) -> None:
    before, after = analysed(text), submitted(text)
    places = [(node.line, node.column) for node in before.structure.nodes]
    assert [(node.line, node.column) for node in after.structure.nodes][: len(places)] == places
    kept, at = "", 0
    for start, end in after.insertions:
        kept += after.instrumented[at:start]
        at = end
    assert kept + after.instrumented[at:] == text
    assert after.instrumented.count("\n") == text.count("\n")


def test_warnings_and_errors_are_at_the_authors_columns() -> None:
    text = f"async () => {{ mcp.fs.list({{}}); return {READ}; }}"
    (told,) = submitted(text).diagnostics
    assert (told.line, told.column, told.source_line) == (1, text.index("mcp") + 1, text)
    refused = "async () => await mcp.fs.raed({})"
    (complaint,) = submitted_complaints(refused)
    assert complaint.startswith(f"1:{refused.index('mcp') + 1} ")


def test_a_fence_round_a_function_gives_both_notices() -> None:
    outcome = submitted(f"```ts\nasync () => {READ}\n```")
    assert len(outcome.notices) == 2
    assert (task(outcome, "n1").line, task(outcome, "n1").column) == (2, 19)
