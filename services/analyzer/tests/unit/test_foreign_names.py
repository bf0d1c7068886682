"""Names of tools as clients list them and as other hosts have them."""

import pytest

from pml_analysis.analysis import Analysis, analyze
from pml_common.contracts.decision import Policy
from pml_common.contracts.listed_names import listed_name
from services.analyzer.tests.patterns import patterns
from services.analyzer.tests.support.foreign_names import (
    ECHO,
    READ,
    SUM,
    TOOLS,
    complaint,
    refused,
    sent,
    squeezed,
)
from services.analyzer.tests.support.library import KNOWN, called
from services.analyzer.tests.support.programs import nodes, submitted, task, tool

CALLS = {
    "as a client lists it": ("mcp.behave_echo({})", f"{ECHO}({{}})"),
    "a listed name in brackets": ('mcp["behave_echo"]({})', f"{ECHO}({{}})"),
    "an id in brackets": ('mcp["behave:echo"]({})', f"{ECHO}({{}})"),
    "a listed name with a prefix": ("mcp.mcp__behave__echo({})", f"{ECHO}({{}})"),
    "a listed name of a tool with a hyphen": ("mcp.everything_get_sum({})", f"{SUM}({{}})"),
    "a tool without its server": ("mcp.echo({})", f"{ECHO}({{}})"),
    "underscores for hyphens": ("mcp.everything.get_sum({})", f"{SUM}({{}})"),
    "camel case": ("mcp.everything.getSum({})", f"{SUM}({{}})"),
    "other case": ("mcp.Behave.Echo({})", f"{ECHO}({{}})"),
    "a server's name, too": ("mcp.file_system.readFile({})", f"{READ}({{}})"),
    "an optional chain": ("mcp?.everything?.get_sum?.({})", f"{SUM}?.({{}})"),
    "a type argument": ("mcp.behave_echo<any>({})", f"{ECHO}<any>({{}})"),
    "in parentheses": ("(mcp).behave_echo({})", f"{ECHO}({{}})"),
    "a cast": ("(mcp as any).behave_echo({})", f"{ECHO}({{}})"),
    "tools of mcp": ("mcp.tools.behave.echo({})", f"{ECHO}({{}})"),
    "a listed name of tools of mcp": ("mcp.tools.everything_get_sum({})", f"{SUM}({{}})"),
    "tools": ("tools.behave.echo({})", f"{ECHO}({{}})"),
    "tools in brackets": ('tools["everything"]["get_sum"]({})', f"{SUM}({{}})"),
    "a listed name of tools": ("tools.behave_echo({})", f"{ECHO}({{}})"),
    "codemode": ("codemode.behave_echo({})", f"{ECHO}({{}})"),
    "codemode with a server": ("codemode.everything.getSum({})", f"{SUM}({{}})"),
    "a text method that gets an object": ("tools.web.search({})", "mcp.web.search({})"),
    "a list's method that gets an object": ("tools.web.find({})", "mcp.web.find({})"),
    "a server alone": ("behave.echo({})", f"{ECHO}({{}})"),
    "a listed name alone": ("behave_echo({})", f"{ECHO}({{}})"),
    "a prefixed name alone": ("mcp__everything__get_sum({})", f"{SUM}({{}})"),
    "a call by two names": ('mcp.callTool("behave", "echo", {})', f"{ECHO}({{}})"),
    "a call by its id": ('mcp.callTool("behave:echo", {})', f"{ECHO}({{}})"),
    "a call by its listed name": ('mcp.call_tool("behave_echo", {})', f"{ECHO}({{}})"),
    "a call by a request": (
        'mcp.callTool({ name: "behave_echo", arguments: { a: 1 } })',
        f"{ECHO}({{a:1}})",
    ),
    "a request with a server": (
        'mcp.callTool({ server: "everything", tool: "get_sum", args: {}, })',
        f"{SUM}({{}})",
    ),
    "a request without arguments": ('mcp.callTool({ "name": "behave_echo" })', f"{ECHO}()"),
    "a request with a shorthand": (
        'mcp.callTool({ name: "behave_echo", input })',
        f"{ECHO}(input)",
    ),
    "a call without arguments": ('mcp.callTool("behave_echo")', f"{ECHO}()"),
    "a constant name": ('mcp.callTool("behave" + "_echo")', f"{ECHO}()"),
    "mcp.call with a listed name": ('mcp.call("behave_echo", {})', f"{ECHO}({{}})"),
    "mcp.call of a request": ('mcp.call({ name: "behave:echo", args: {} })', f"{ECHO}({{}})"),
    "mcp.call with two names": ('mcp.call("behave", "echo", {})', f"{ECHO}({{}})"),
    "mcp.call of another spelling": ('mcp.call("everything:get_sum")', f"{SUM}()"),
    "mcp.tools.call": ('mcp.tools.call("behave:echo", {})', f"{ECHO}({{}})"),
    "callTool alone": ('callTool("behave", "echo", {})', f"{ECHO}({{}})"),
    "call_tool alone": ('call_tool({ name: "behave_echo" })', f"{ECHO}()"),
    "a client's callTool": ('client.callTool({ name: "behave_echo" })', f"{ECHO}()"),
    "a session's call_tool": ('session.call_tool("behave_echo", {})', f"{ECHO}({{}})"),
    "codemode.callTool": ('codemode.callTool("behave_echo", {})', f"{ECHO}({{}})"),
    "a tool that is no member": ("mcp.odd_then({ a: 1 })", 'mcp.call("odd:then",{a:1})'),
    "a tool that is no member, without arguments": ("tools.odd.then()", 'mcp.call("odd:then")'),
    "a call by name of one": ('callTool("odd_then", {})', 'mcp.call("odd:then",{})'),
    "a call by name of one, without arguments": ('callTool("odd_then")', 'mcp.call("odd:then")'),
    "a tool with brackets in its name": (
        'callTool("hub", "In_(All)", {})',
        'mcp.hub["in(all)"]({})',
    ),
    "calls in each other": (
        'mcp.callTool("behave_echo", { a: await mcp.behave_echo({}) })',
        f"{ECHO}({{a:await{ECHO}({{}})}})",
    ),
    "a name in a template": ("mcp[`behave${'_'}echo`]({})", f"{ECHO}({{}})"),
    "a computed name that is constant": (
        'mcp.everything["get" + "_sum"]({})',
        f"{SUM}({{}})",
    ),
}


@pytest.mark.parametrize(("text", "code"), CALLS.values(), ids=CALLS)
def test_a_name_that_only_one_tool_can_mean_is_that_tool(text: str, code: str) -> None:
    outcome = sent(f"return {text};")
    assert squeezed(outcome.code) == squeezed(f"return {code};")
    assert not outcome.dynamic_calls
    assert outcome.free in ((), ("input",))
    (notice,) = outcome.notices
    assert notice.startswith("Names of tools were replaced by those that work here: `")
    assert outcome.reads_catalog


@pytest.mark.parametrize("text", [text for text, _ in CALLS.values()])
def test_a_replaced_program_is_replaced_once_and_is_the_one_written_so(text: str) -> None:
    first = sent(f"return {text};")
    again = sent(first.code)
    assert (again.code, again.notices, again.inserted) == (first.code, (), ())
    assert again.code_hash == first.code_hash
    assert nodes(again) == nodes(first)
    stored = analyze(first.code, tools=TOOLS, policy=Policy())
    assert isinstance(stored, Analysis)
    assert stored.code_hash == first.code_hash


@pytest.mark.parametrize("text", [text for text, _ in CALLS.values()])
@pytest.mark.parametrize("place", ["\n{};await mcp.git.status({{ later: 1 }});", "[1,\n {} , 2];"])
def test_everything_else_stays_where_the_author_wrote_it(text: str, place: str) -> None:
    code = place.format(text)
    outcome = sent(code)
    kept, at = "", 0
    for start, end in outcome.inserted:
        kept, at = kept + outcome.code[at:start], end
    kept += outcome.code[at:]
    assert len(kept) == len(code)
    assert kept[: code.index(text)] == code[: code.index(text)]
    assert kept[code.index(text) + len(text) :] == code[code.index(text) + len(text) :]
    first = min(outcome.structure.nodes, key=lambda node: (node.line, node.column))
    assert (first.line, first.column) == (2, code.splitlines()[1].index(text[:3]) + 1)
    assert outcome.source.line(2) == code.splitlines()[1]


ALIASES = {
    "a server under a name": (
        "const all = mcp.file_system; return all.readFile({});",
        'const all = mcp["file-system"]; return all.read_file({});',
    ),
    "a tool under a name": (
        "const sum = mcp.everything.get_sum; return sum({});",
        'const sum = mcp.everything["get-sum"]; return sum({});',
    ),
    "a listed name under a name": (
        "const echo = mcp.behave_echo; return echo({});",
        "const echo = mcp.behave.echo; return echo({});",
    ),
    "an optional part": (
        "const e = mcp.everything; return e?.get_sum({}) ?? e?.getSum({});",
        'const e = mcp.everything; return e?.["get-sum"]({}) ?? e?.["get-sum"]({});',
    ),
    "an optional name": (
        "const b = mcp.behave; return b?.Echo({});",
        "const b = mcp.behave; return b?.echo({});",
    ),
    "a pattern": (
        "const { get_sum } = mcp.everything; return get_sum({});",
        'const { "get-sum": get_sum } = mcp.everything; return get_sum({});',
    ),
    "a pattern with another name": (
        "const { getSum: sum } = mcp.everything; return sum({});",
        'const { "get-sum": sum } = mcp.everything; return sum({});',
    ),
    "a quoted key": (
        'const { "get_sum": sum } = mcp.everything; return sum({});',
        'const { "get-sum": sum } = mcp.everything; return sum({});',
    ),
    "a pattern with a default": (
        "const { get_sum = null } = mcp.everything; return get_sum({});",
        'const { "get-sum": get_sum = null } = mcp.everything; return get_sum({});',
    ),
    "a pattern of a listed name": (
        "const { behave_echo } = mcp; return behave_echo({});",
        "const { behave: { echo: behave_echo } } = mcp; return behave_echo({});",
    ),
    "a pattern of a server": (
        "const { file_system } = mcp; return file_system.read_file({});",
        'const { "file-system": file_system } = mcp; return file_system.read_file({});',
    ),
    "a pattern in a pattern": (
        "const { everything: { get_sum } } = mcp; return get_sum({});",
        'const { everything: { "get-sum": get_sum } } = mcp; return get_sum({});',
    ),
    "a server's pattern in a pattern": (
        "const { file_system: { readFile } } = mcp; return readFile({});",
        'const { "file-system": { read_file: readFile } } = mcp; return readFile({});',
    ),
    "an assigned pattern": (
        "let get_sum; ({ get_sum } = mcp.everything); return get_sum({});",
        'let get_sum; ({ "get-sum": get_sum } = mcp.everything); return get_sum({});',
    ),
    "a pattern of a cast part": (
        "const { readFile } = mcp.file_system as any; return readFile({});",
        'const { read_file: readFile } = mcp["file-system"] as any; return readFile({});',
    ),
    "a pattern of a part": (
        "const { readFile } = mcp.file_system; return readFile({});",
        'const { read_file: readFile } = mcp["file-system"]; return readFile({});',
    ),
}


@pytest.mark.parametrize(("text", "code"), ALIASES.values(), ids=ALIASES)
def test_a_tool_under_a_name_of_the_program_is_found_too(text: str, code: str) -> None:
    outcome = sent(text)
    assert squeezed(outcome.code) == squeezed(code)
    assert not outcome.dynamic_calls
    assert "Names of tools were replaced" in outcome.notices[0]
    assert sent(outcome.code).notices == ()


LEFT = {
    "names that resolve": "return mcp.behave.echo({});",
    "a name that resolves beside a similar one": "return mcp.hub.list_all({});",
    "mcp.call with an id": 'return mcp.call("behave:echo", {});',
    "mcp.call with an id and a text": 'return mcp.call("behave:echo", "everything");',
    "mcp.call with a computed name": "return mcp.call(args.name, {});",
    "a parameter called tools": "const f = (tools) => tools.behave.echo({}); return f(args);",
    "a local called tools": "const tools = args; return tools.behave.echo({});",
    "a local callTool": 'const callTool = (n) => n; return callTool("behave_echo");',
    "a function called like a tool": "function behave_echo() {} return behave_echo({});",
    "a local called like a server": "const behave = args; return behave.echo({});",
    "a property called tools": "return args.tools.behave.echo({});",
    "a caller's list": "return tools.map((each) => each.name);",
    "a part of a caller's list": "return tools.slice(0, 3);",
    "a part of a list that is called like a server": "return [git.slice(1), git.slice(0, 1)];",
    "a caller's list of a list": 'return tools.behave.includes("echo");',
    "a caller's object that gets an object": "return tools.behave.push({ a: 1 });",
    "tools that are read, too": "return tools.behave.echo({ n: tools.n });",
    "tools that are tested": "if (tools) return tools.behave.echo({});",
    "tools that are written": "tools = 1; return tools.behave.echo({});",
    "tools that may be absent": "return tools?.behave?.echo?.({});",
    "a call that may be absent": "return tools.behave.echo?.({});",
    "a computed part of tools": "return tools[args.server].echo({});",
    "parts of parts": "return tools.behave.echo.call(null, {});",
    "a server that is read": "return [behave.echo({}), behave.n];",
    "another call of a server's name": "return [behave.echo({}), behave.other({})];",
    "a host's name in a text": 'return "tools.behave.echo({})";',
    "a host's name in a template": "return `tools.behave.echo({})`;",
    "a host's name in a comment": "return 1; // tools.behave.echo({})",
    "mcp of the program": "const mcp = args; return tools.behave.echo({ mcp });",
    "the caller's arguments": "return [args.behave.echo({}), params.behave.echo({})];",
    "a tool's own list": "return (await mcp.behave.echo({})).tools.behave.echo({});",
    "a written member": "mcp.behave_echo = 1;",
    "a pattern of data": "const { get_sum } = args; return get_sum;",
    "a pattern of a call": "const { get_sum } = await mcp.behave.echo({}); return get_sum;",
    "a computed key in a pattern": "const { [args.n]: get } = mcp.behave; return 1;",
    "a constant computed key in a pattern": 'const { ["get_sum"]: get } = mcp.everything;',
    "the rest of a pattern": "const { ...rest } = mcp.everything; return 1;",
    "a name after a call": 'return tools[(await mcp.git.status({}), "behave")].echo({});',
    "a part after a call": 'const e = mcp.everything[(await mcp.git.status({}), "get_sum")];',
    "a list of tools": "const [get_sum] = mcp.everything; return 1;",
    "a name of the language": "return mcp.behave.toString;",
    "a part that is written": "let e = mcp.everything; e.get_sum = 1;",
    "several tools in a pattern": "const { status } = mcp; return 1;",
    "a tool that is no member, in a pattern": "const { Then } = mcp.odd; return 1;",
    "parts of a name that is no server": "const s = mcp.nothing.at; return 1;",
    "a declaration without a value": "let get_sum; return get_sum;",
    "an await in the chain": "return (await tools).behave.echo({});",
}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_any_other_program_is_left_as_it_is(text: str) -> None:
    before = analyze(text, tools=TOOLS, policy=Policy())
    after = analyze(text, tools=TOOLS, policy=Policy(), submitted=True)
    assert before == after


@pytest.mark.parametrize("text", [each.code for each in patterns()])
def test_programs_whose_names_resolve_are_untouched(text: str) -> None:
    outcome = submitted(text)
    assert not any("Names of tools" in each for each in outcome.notices)
    assert not outcome.reads_catalog


def test_a_listed_name_with_digits_of_its_hash_is_that_tool() -> None:
    name = listed_name("a:b_c", 8)
    assert nodes(sent(f"return mcp.{name}({{}});")) == "n1 a:b_c"
    assert complaint("mcp.a_b_c_0123abcd({})").startswith("1:1 mcp.a_b_c_0123abcd is no tool")


def test_a_listed_capability_is_that_capability() -> None:
    for text in (
        "return mcp.cap_fs_read_json({});",
        "return codemode.cap_fs_read_json({});",
        "return cap_fs_read_json({});",
        'return mcp.callTool("cap_fs_read_json", {});',
        'return callTool({ name: "cap:fs:read_json", arguments: {} });',
    ):
        tools = (*TOOLS, tool("fs:read", "path"))
        outcome = sent(text, tools, KNOWN)
        assert called(outcome) == ["n1 fs:read_json"]
        assert "capabilities.fs_read_json" in outcome.notices[0]
    text = "const capabilities = 1; return mcp.cap_fs_read_json({});"
    assert complaint(text).startswith("1:32 mcp.cap_fs_read_json is no tool")


def test_chains_over_several_lines_keep_the_lines() -> None:
    text = "return tools // all\n  .everything\n  .get_sum({ a: 1 },\n  );\nnothing.at.all;"
    outcome = sent(text)
    assert outcome.code.count("\n") == text.count("\n")
    assert squeezed(outcome.code) == f"return{SUM}({{a:1}},);nothing.at.all;"
    assert (task(outcome, "n1").line, task(outcome, "n1").column) == (1, 8)
    request = 'await mcp.callTool({\r\n  name: "behave_echo",\r\n  arguments: { a: 1 },\r\n});'
    outcome = sent(request)
    assert outcome.code.splitlines()[2].strip() == "{ a: 1 })"
    assert len(outcome.code.splitlines()) == 4


def test_calls_in_one_program_are_told_in_one_notice() -> None:
    text = "mcp.behave_echo({}); tools.everything.get_sum({}); " * 2 + (
        "callTool('git_status'); codemode.web_find({}); codemode.web_search({});"
    )
    *_, notice = sent(f"{text} return 1;").notices
    assert notice == (
        "Names of tools were replaced by those that work here: `mcp.behave_echo` is "
        '`mcp.behave.echo`, `tools.everything.get_sum` is `mcp.everything["get-sum"]`, '
        '`callTool("git_status", …)` is `mcp.git.status(…)`, and 2 more.'
    )


def test_a_long_name_is_told_in_part() -> None:
    text = f"tools{' ' * 10}[{'' + '+'.join(repr('') for _ in range(40))}+'behave'].echo({{}})"
    (notice,) = sent(f"return {text};").notices
    assert "…` is `mcp.behave.echo`" in notice


def test_completion_follows_on_the_names_that_work() -> None:
    outcome = sent("const r = await tools.behave_echo({});\nr")
    assert outcome.code.endswith("\nreturn r")
    assert len(outcome.notices) == 2
    outcome = sent("```ts\nasync () => await callTool('behave', 'echo', {})\n```")
    assert len(outcome.notices) == 3
    assert (task(outcome, "n1").line, task(outcome, "n1").column) == (2, 19)
    assert outcome.source.line(2) == "async () => await callTool('behave', 'echo', {})"


def test_warnings_and_errors_show_the_line_as_it_was_sent() -> None:
    text = "mcp.callTool({ name: 'behave_echo' }); const r = mcp.odd.nothing({});"
    (told,) = refused(text).diagnostics
    assert (told.column, told.source_line) == (text.index("mcp.odd") + 1, text)
    text = "tools.everything.getSum({}); mcp.behave.echo({}); return 1;"
    told, other = sent(text).diagnostics
    assert (told.column, other.column) == (1, text.index("mcp.behave") + 1)
    assert told.source_line == other.source_line == text


def test_what_runs_is_the_replaced_text_with_insertions() -> None:
    outcome = sent("return await tools.everything.get_sum({ a: 1 });")
    kept, at = "", 0
    for start, end in outcome.insertions:
        kept, at = kept + outcome.instrumented[at:start], end
    kept += outcome.instrumented[at:]
    assert len(kept) == len("return await tools.everything.get_sum({ a: 1 });")
    assert SUM in outcome.instrumented
