"""Code that runs and is likely not meant: reported as warnings, each with a place; honest code has
none."""

import pytest

from pml_analysis.analysis import Analysis, analyze
from pml_common.contracts.decision import Policy
from services.analyzer.tests.support.programs import TOOLS, analysed, warnings

READ = "mcp.fs.read({ path: 'a' })"
NOBODY = "Nothing waits for this call"
UNREADY = "The result of this call is not there yet: write await before the call"

DROPPED = {
    "a call": (f"{READ};", f"1:1 {NOBODY}"),
    "a call by name": ("mcp.call('fs:read', { path: 'a' });", f"1:1 {NOBODY}"),
    "a chain": (f"{READ}.then((r) => r).catch(() => 1);", f"1:1 {NOBODY}"),
    "in parentheses": (f"({READ});", f"1:2 {NOBODY}"),
    "under a condition": (f"args.a && {READ};", f"1:11 {NOBODY}"),
    "a choice": (f"args.a ? {READ} : 1;", f"1:10 {NOBODY}"),
    "before a comma": (f"const a = ({READ}, 1); return a;", f"1:12 {NOBODY}"),
    "after a comma": (f"1, {READ};", f"1:4 {NOBODY}"),
    "a name that nobody reads": (f"const a = {READ};", f"1:11 {NOBODY}"),
    "a chain that nobody reads": (f"const a = {READ}.then((r) => r);", f"1:11 {NOBODY}"),
    "a local function": (f"async function f() {{ await {READ}; }}\nf();", f"2:1 {NOBODY}"),
    "a local arrow": (f"const f = async () => {READ};\nf();", f"2:1 {NOBODY}"),
    "a function called at once": (f"(async () => {{ await {READ}; }})();", f"1:1 {NOBODY}"),
    "forEach": (
        "args.a.forEach(async (x) => { await mcp.fs.read({ path: x }); });",
        "1:16 forEach does not wait for its function: write for (const … of …) with await",
    ),
    "forEach of an expression": (
        "args.a.forEach((x) => mcp.fs.read({ path: x }));",
        "1:16 forEach does not wait for its function",
    ),
    "map": (
        "args.a.map(async (x) => { await mcp.fs.read({ path: x }); });",
        "1:12 Nothing waits for these promises: write await Promise.all(….map(…)).",
    ),
    "a list awaited": (
        "return await args.a.map((x) => mcp.fs.read({ path: x }));",
        "1:25 Nothing waits for these promises",
    ),
    "filter": (
        "return args.a.filter(async (x) => (await mcp.fs.stat({ path: x })).exists);",
        "1:22 filter takes every promise for true: await the calls before it.",
    ),
}
TOO_EARLY = {
    "a member": (f"return {READ}.content;", f"1:8 {UNREADY}, in parentheses."),
    "a member awaited": (f"return await {READ}.content;", f"1:14 {UNREADY}, in parentheses."),
    "a member in brackets": (f"return {READ}['content'];", f"1:8 {UNREADY}, in parentheses."),
    "a pattern": (f"const {{ content }} = {READ}; return content;", f"1:21 {UNREADY}."),
    "a name": (
        f"const r = {READ}; return r.content;",
        f"1:11 {UNREADY}, or before r where it is used.",
    ),
    "a name's part": (f"const r = {READ}; const {{ a }} = r; return a;", f"1:11 {UNREADY}, or"),
    "a template": (f"return `${{{READ}}}`;", f"1:11 {UNREADY}."),
    "a condition": (f"if ({READ}) return 1;", f"1:5 {UNREADY}."),
    "a condition turned": (f"while (!{READ}) f();\nfunction f() {{}}", f"1:9 {UNREADY}."),
    "a choice": (f"return {READ} ? 1 : 2;", f"1:8 {UNREADY}."),
    "a comparison": (f"return {READ} === 1;", f"1:8 {UNREADY}."),
    "a loop": (f"for (const a of {READ}) a;", f"1:17 {UNREADY}."),
    "a spread": (f"return {{ ...{READ} }};", f"1:13 {UNREADY}."),
    "an argument of a tool": (
        f"await mcp.fs.write({{ path: 'a', content: {READ} }});",
        f"1:42 {UNREADY}.",
    ),
    "deep in an argument": (
        f"await mcp.http.post({{ url: 'a', headers: {{ a: [{READ}] }} }});",
        f"1:48 {UNREADY}.",
    ),
    "all arguments": (f"await mcp.fs.write({READ});", f"1:20 {UNREADY}."),
    "a name as an argument": (
        f"const content = {READ}; await mcp.fs.write({{ path: 'a', content }});",
        f"1:17 {UNREADY}, or before content",
    ),
    "printed": (f"console.log({READ});", f"1:13 {UNREADY}."),
    "as text": (f"return JSON.stringify({READ});", f"1:23 {UNREADY}."),
    "a local function's": (
        f"const f = async () => {READ};\nreturn f().content;",
        f"2:8 {UNREADY}, in parentheses.",
    ),
}
UNREACHABLE = {
    "after return": (
        f"return 1;\nawait {READ};",
        "2:7 This is never reached: the statement on line 1 always leaves before it.",
    ),
    "after throw": (f"throw 1; await {READ};", "1:16 This is never reached"),
    "after break": (f"for (;;) {{ break; await {READ}; }}", "1:25 This is never reached"),
    "after continue": (f"for (;;) {{ continue; await {READ}; }}", "1:28 This is never reached"),
    "after both ways": (
        f"if (args.a) {{ return 1; }} else throw 2;\nawait {READ};",
        "2:7 This is never reached",
    ),
    "after a block": (f"{{ return 1; }}\nawait {READ};", "2:7 This is never reached"),
    "after try": (
        f"try {{ return 1; }} catch {{ return 2; }}\nawait {READ};",
        "2:7 This is never reached",
    ),
    "after try without catch": (
        f"try {{ return 1; }} finally {{ f(); }}\nawait {READ};\nfunction f() {{}}",
        "2:7 This is never reached",
    ),
    "after finally": (
        f"try {{ f(); }} finally {{ return 1; }}\nawait {READ};\nfunction f() {{}}",
        "2:7 This is never reached",
    ),
    "in a case": (
        f"switch (args.a) {{ case 1: return 1; await {READ}; }}",
        "1:43 This is never reached",
    ),
    "a call by name only the run knows": (
        "return 1;\nawait mcp[args.a].read({});",
        "2:7 This is never reached",
    ),
    "in a function": (
        f"const f = async () => {{ return 1; await {READ}; }}; await f();",
        "1:41 This is never reached",
    ),
}
SLIPS = {
    "two letters swapped": ("const result = 1; return reslut;", "1:26 reslut is not declared"),
    "one letter left out": (
        "const path = 1; return pth;",
        "1:24 pth is not declared here, so the caller has to pass it: is path meant?",
    ),
    "one letter too many": ("const path = 1; return paath;", "1:24 paath is not declared"),
    "a last letter twice": ("const path = 1; return pathh;", "1:24 pathh is not declared"),
    "another case": ("const userId = 1; return userID;", "1:26 userID is not declared here"),
    "args": ("return arg.a;", "1:8 arg is not declared here, so the caller has to pass it"),
    "args swapped": ("return agrs.a;", "1:8 agrs is not declared here"),
    "context": ("return contxt.a;", "1:8 contxt is not declared here"),
    "mcp": ("return mpc.fs;", "1:8 mpc is not declared here"),
    "a built-in": ("return Promsie;", "1:8 Promsie is not declared here"),
    "told once": ("const path = 1; return pth + pth;", "1:24 pth is not declared"),
    "a name of another block": (
        "for (const a of args.a) {\n  const b = a;\n}\nreturn b;",
        "4:8 b is not declared here, so the caller has to pass it: the one of line 2 is known "
        "in its own block only.",
    ),
}
CHANGED = {
    "assigned": ("const a = 1; a = 2;", "1:14 a is const, this fails when reached: declare it"),
    "counted": ("const a = 1; a++;", "1:14 a is const"),
    "by a pattern": ("const a = 1; [a] = [2];", "1:15 a is const"),
    "in a loop": ("for (const a of args.a) { a += 1; }", "1:27 a is const"),
}
WARNED = {
    f"{group}: {name}": case
    for group, cases in {
        "nobody waits": DROPPED,
        "too early": TOO_EARLY,
        "unreachable": UNREACHABLE,
        "slips": SLIPS,
        "constants": CHANGED,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("code", "warning"), WARNED.values(), ids=WARNED)
def test_what_is_likely_not_meant_is_a_warning_with_its_place(code: str, warning: str) -> None:
    told = warnings(code)
    assert len(told) == 1, told
    assert told[0].startswith(warning), told


HONEST = {
    "awaited": f"await {READ};",
    "returned": f"return {READ};",
    "returned from a choice": f"return args.a ? {READ} : args.b || {READ};",
    "awaited later": f"const r = {READ}; const s = await r; return s.content;",
    "assigned": f"let r; r = {READ}; return await r;",
    "given away on purpose": f"void {READ};",
    "chained": f"return {READ}.then((r) => r.content);",
    "chained under a name": f"const r = {READ}; return r.then((s) => s.content);",
    "a chain called otherwise": f"const r = {READ}; return r.then.length;",
    "a member that only the run can tell": f"const r = {READ}; return r[args.a];",
    "several at once": f"const [a, b] = await Promise.all([{READ}, {READ}]); return [a, b];",
    "several names at once": f"const a = {READ}; const b = {READ}; return Promise.all([a, b]);",
    "a map awaited": "return Promise.all(args.a.map((x) => mcp.fs.read({ path: x })));",
    "a map kept": "const rs = args.a.map(async (x) => mcp.fs.read({ path: x })); return rs;",
    "forEach without calls": "args.a.forEach(async (x) => { console.log(x); });",
    "forEach of a plain function": (
        "let last; args.a.forEach((x) => { last = mcp.fs.read({ path: x }); }); return await last;"
    ),
    "a filter of results": "return args.a.filter((x) => x.exists);",
    "a sum of results": (
        "return args.a.reduce(async (s, x) => (await s) + (await mcp.fs.stat({ path: x })).a, 0);"
    ),
    "a handler passed on": f"const f = async () => {READ}; return args.a.map(f);",
    "a plain local function": f"const f = () => 1; f(); return {READ};",
    "a default": f"return {READ} ?? 1;",
    "a look at what it is": f"return {READ} instanceof Promise;",
    "for await": f"for await (const a of {READ}) a;",
    "a loop over keys": "for (const a of args.a) { await mcp.fs.read({ path: a }); }",
    "an argument of one's own function": f"const f = (p) => p; return f({READ});",
    "an argument of Promise": f"return Promise.resolve({READ});",
    "a tag's": f"const t = (s, p) => p; return t`${{{READ}}}`;",
    "a key": f"return {{ [await {READ}]: 1 }};",
    "a value of an object": f"return {{ a: {READ} }};",
    "an awaited condition": f"if (await {READ}) return 1;",
    "one way that leaves": f"if (args.a) {{ return 1; }}\nawait {READ};",
    "two ways of which one leaves": f"if (args.a) {{ return 1; }} else {{ f(); }}\nawait {READ};"
    "function f() {}",
    "a try that may fail": f"try {{ return 1; }} catch {{ }}\nawait {READ};",
    "a loop that leaves": f"for (;;) {{ return 1; }}\nawait {READ};",
    "a labelled block": f"a: {{ break a; }}\nawait {READ};",
    "a switch that leaves": f"switch (1) {{ default: return 1; }}\nawait {READ};",
    "a function below": f"return f();\nasync function f() {{ return await {READ}; }}",
    "parameters": "return path + url + date + map + content + contents;",
    "parameters beside names": "const paths = [], item1 = 1; return [path, item2, item];",
    "endings": "const update = 1, file = 2; return updated + files + profile;",
    "short names": "const id = 1, x1 = 2; return ids + x2 + ix;",
    "a name that a callback has too": "return args.a.map((path) => path) + path;",
    "long names": f"const a{'b' * 50} = 1; return a{'b' * 49}c;",
    "a variable": "let a = 1; a = 2; var b = 1; b++; const o = {}; o.a = 1;",
}


@pytest.mark.parametrize("code", HONEST.values(), ids=HONEST)
def test_honest_code_has_no_warning(code: str) -> None:
    assert warnings(code) == []


def test_a_warning_stops_nothing_and_shows_its_line() -> None:
    (told,) = analysed(f"const a = 1;\n  {READ};").diagnostics
    assert (told.severity, told.line, told.column) == ("warning", 2, 3)
    assert told.source_line == f"  {READ};"


def test_the_first_twenty_are_told_in_source_order() -> None:
    told = warnings("mcp.fs.read({ path: pth });\n" * 30 + "const path = 1;")
    assert len(told) == 20
    assert told[0].startswith("1:1 ")
    assert told[1].startswith("1:21 pth")
    assert told[2].startswith("2:1 ")


def test_names_beyond_counting_are_not_compared() -> None:
    declared = "".join(f"let name{number};" for number in range(2_001))
    assert warnings(f"{declared} return nmae1;") == []


def test_a_rejected_program_has_errors_only() -> None:
    outcome = analyze(f"{READ}; eval(1);", tools=TOOLS, policy=Policy())
    assert not isinstance(outcome, Analysis)
    assert [told.severity for told in outcome.diagnostics] == ["error"]
