"""Calls of capabilities: the one that is meant, and dynamic calls."""

import pytest

from pml_analysis.capability_reading import read_capability
from pml_analysis.decision.capabilities import (
    MAX_CAPABILITIES,
    MAX_DEPTH,
    Capability,
    Library,
    is_valid_reference,
)
from pml_common.contracts.structure import CapabilityNode, LiteralArgument
from services.analyzer.tests.support.library import (
    KNOWN,
    PURE,
    READ_JSON,
    called,
    calling,
    complaint,
    described,
    library,
    refused,
)
from services.analyzer.tests.support.programs import analysed, flow, provided

RESOLVED = {
    "by its callable name": "capabilities.fs_read_json({})",
    "in brackets": "capabilities['fs_' + 'read_json']({})",
    "escaped": "capabilities.fs_read\\u005fjson({})",
    "by its own name": "mcp.call('cap:fs:read_json', {})",
    "by a constant name": "const name = 'cap:fs:read_json'; mcp.call(name, {})",
    "as a tool of cap": "mcp.cap['fs:read_json']({})",
    "as a tool of cap, by its callable name": "mcp.cap.fs_read_json({})",
    "an alias": "const read = capabilities.fs_read_json; read({})",
    "destructured": "const { fs_read_json: r } = capabilities; r({})",
    "an alias of all": "const c = capabilities; c.fs_read_json({})",
    "an optional call": "capabilities?.fs_read_json?.({})",
    "by a former name": "capabilities.fs_old_json({})",
    "by a former name in full": "mcp.call('cap:fs:old_json', {})",
}


@pytest.mark.parametrize("code", RESOLVED.values(), ids=RESOLVED)
def test_a_call_is_traced_to_its_capability(code: str) -> None:
    renamed = READ_JSON.model_copy(update={"aliases": ("fs:old_json",)})
    analysis = calling(code, library(renamed))
    assert called(analysis) == ["n1 fs:read_json"]
    assert not analysis.dynamic_calls
    (node,) = [one for one in analysis.structure.nodes if isinstance(one, CapabilityNode)]
    assert node.capability_id == str(READ_JSON.capability_id)


DYNAMIC = {
    "an unknown name": ("capabilities[args.c]({})", "capabilities[args.c]({})"),
    "an unknown tool of cap": ("mcp.cap[args.c]({})", "mcp.cap[args.c]({})"),
    "a method of one": (
        "capabilities.fs_read_json.call(null, {})",
        "capabilities.fs_read_json.call(null, {})",
    ),
    "a place in a pattern": ("const [c] = capabilities; c({})", "c({})"),
    "one of two": (
        "(args.x ? capabilities.fs_read_json : capabilities.math_double)({})",
        "(args.x ? capabilities.fs_read_json : capabilities.math_double)({})",
    ),
    "a capability or a tool": ("const c = args.x ? capabilities.a : mcp.fs.read; c({})", "c({})"),
    "returned": ("return capabilities;", "capabilities"),
    "handed to a function": ("const f = (x) => x; f(capabilities.a)", "capabilities.a"),
    "kept in an object": ("const o = { c: capabilities.a }; o.c({})", "capabilities.a"),
    "kept in a member": ("const o = {}; o.c = capabilities.a; o.c({})", "o.c"),
}


@pytest.mark.parametrize(("code", "expression"), DYNAMIC.values(), ids=DYNAMIC)
def test_what_only_the_run_can_tell_is_asked_for(code: str, expression: str) -> None:
    analysis = calling(code)
    assert expression in [call.expression for call in analysis.dynamic_calls]
    assert analysis.decision.verdict == "ask"


@pytest.mark.parametrize(
    "code",
    [
        "if (capabilities.never) {} typeof capabilities;",
        "const c = capabilities.never;",
        "const f = (capabilities) => capabilities.never({}); f({})",
    ],
)
def test_what_calls_nothing_is_no_call(code: str) -> None:
    assert not called(analysed(code))


REFUSED = {
    "capabilities is no function": (
        "capabilities({})",
        "1:1 capabilities is not a function: call one of the capabilities, capabilities.<name>(…).",
    ),
    "cap is no function": (
        "mcp.cap({})",
        '1:1 cap is no tool: call a capability by its name, mcp.call("cap:<name>", …).',
    ),
    "cap without a name": (
        "mcp.call('cap:', {})",
        "1:1 mcp.call takes \"server:tool\"; this is 'cap:'.",
    ),
    "an unknown one": (
        "capabilities.fs_raed_json({})",
        '1:1 There is no capability "fs_raed_json". Did you mean fs_read_json?',
    ),
    "an unknown one by name": (
        "mcp.call('cap:fs:raed_json', {})",
        '1:1 There is no capability "fs:raed_json". Did you mean fs:read_json?',
    ),
    "like no other": ("capabilities.zzz({})", '1:1 There is no capability "zzz".'),
}


@pytest.mark.parametrize(("code", "told"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_called_is_refused(code: str, told: str) -> None:
    assert complaint(code) == told


def test_every_unknown_capability_is_told_at_each_of_its_calls_and_named_once() -> None:
    rejection = refused("capabilities.a({});\ncapabilities.b({});\ncapabilities.a({});")
    assert [told.line for told in rejection.diagnostics] == [1, 2, 3]
    assert rejection.missing_capabilities == ("a", "b")
    assert not rejection.missing_tools


def test_what_was_near_in_the_registry_is_offered() -> None:
    known = Library(near={"fs_raed": ["fs_read", "fs_reap"]})
    assert complaint("capabilities.fs_raed({})", known) == (
        '1:1 There is no capability "fs_raed". Did you mean fs_read or fs_reap?'
    )


def test_what_the_registry_refuses_cannot_be_called_and_says_why() -> None:
    refused_by_name = {"fs_read_json": "version 1 is not what was signed"}
    known = Library(refused=refused_by_name)
    assert complaint("capabilities.fs_read_json({})", known) == (
        "1:1 Capability fs_read_json cannot be called: version 1 is not what was signed"
    )
    caller = described("report:weekly", "return capabilities.fs_read_json({});")
    through = Library({"report_weekly": read_capability(caller)}, refused=refused_by_name)
    assert complaint("capabilities.report_weekly({})", through) == (
        "1:1 Capability report:weekly calls fs_read_json, which cannot be called: "
        "version 1 is not what was signed"
    )


def test_of_two_with_one_callable_name_the_first_named_has_it() -> None:
    first, second = described("a:b_c", "return 1;"), described("a-b:c", "return 2;")
    known = library(first, second)
    assert called(calling("capabilities.a_b_c()", known)) == ["n1 a:b_c"]
    suffixed = f"a_b_c_{second.capability_id.hex[-4:]}"
    assert called(calling(f"capabilities.{suffixed}()", known)) == ["n1 a-b:c"]
    assert called(calling("mcp.call('cap:a-b:c')", known)) == ["n1 a-b:c"]


def test_a_capability_is_a_node_like_a_task_and_data_flows_through_it() -> None:
    analysis = calling(
        "const config = await capabilities.fs_read_json({ path: 'a.json' });\n"
        "if (config.ok) await mcp.fs.write({ path: 'b', content: config.text });",
    )
    assert called(analysis) == ["n1 fs:read_json"]
    assert flow(analysis) == "n1>d1 d1>n2:true"
    assert provided(analysis) == "n1>n2:partial"
    node = analysis.structure.nodes[0]
    assert isinstance(node, CapabilityNode)
    assert node.arguments == {"path": LiteralArgument(value="a.json")}
    assert '__pml.at("n1", capabilities.fs_read_json)(' in analysis.instrumented


def test_what_a_capability_takes_tells_what_its_caller_takes() -> None:
    takes = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    double = PURE.model_copy(update={"parameters_schema": takes})
    schema = calling("return capabilities.math_double({ x: args.amount });", library(double))
    assert schema.parameters_schema["properties"] == {"amount": {"type": "number"}}


@pytest.mark.parametrize(
    ("reference", "possible"),
    [
        ("fs:read", True),
        ("org.project:fs:read", True),
        ("", False),
        ("a b", False),
        ("\ud800", False),
        ("x" * 257, False),
    ],
)
def test_some_texts_can_name_no_capability(reference: str, possible: bool) -> None:
    assert is_valid_reference(reference) == possible


def test_only_so_many_capabilities_may_be_reached() -> None:
    many = [described(f"x:c{number}", "return 1;") for number in range(MAX_CAPABILITIES + 1)]
    assert called(calling("capabilities.x_c0()", library(*many[:MAX_CAPABILITIES])))
    message = complaint("capabilities.x_c0()", library(*many))
    assert f"More than {MAX_CAPABILITIES} capabilities" in message


CANNOT = {
    "its text": ("return (;", '1 of its program: "(" is never closed.'),
    "its size": ("\0", "1 of its program: A program cannot"),
    "its depth": (f"\nreturn {'[' * 600}{']' * 600};", "2 of its program: It nests too deep"),
    "what is forbidden": ("const x = 1;\neval(x);", "2 of its program: eval is not allowed"),
    "its arguments": (
        "const args = 1, context = 2; return given;",
        "1 of its program: args and context are both declared",
    ),
    "its nodes": ("await mcp.fs.read({});\n" * 1_100, "1001 of its program: It has too many"),
    "what is no tool": ("mcp.fs({});", "1 of its program: fs is a server, not a tool"),
}


@pytest.mark.parametrize(("code", "why"), CANNOT.values(), ids=CANNOT)
def test_a_capability_that_no_program_could_be_cannot_be_called(code: str, why: str) -> None:
    outer = described("a:outer", "return capabilities.a_inner();")
    known = library(described("a:inner", code), outer)
    assert f"Capability a:inner cannot be called: on line {why}" in complaint(
        "capabilities.a_inner()", known
    )
    nested = complaint("capabilities.a_outer()", known)
    assert f"Capability a:inner, called by a:outer, cannot be called: on line {why}" in nested


def test_a_nested_capability_that_is_not_there_is_told_by_who_calls_it() -> None:
    known = library(described("a:b", "return capabilities.gone_for_good();"))
    assert complaint("capabilities.a_b()", known) == (
        '1:1 Capability a:b calls "gone_for_good", which is no capability.'
    )


def test_a_nested_tool_that_is_not_there_is_told_by_who_calls_it() -> None:
    known = library(
        described("a:b", "await mcp.fs.raed({});"),
        described("a:c", "await capabilities.a_b();"),
    )
    assert complaint("capabilities.a_c()", known) == (
        '1:1 Capability a:b, called by a:c, calls "fs:raed". "fs" has no tool "raed". '
        "Did you mean fs:read?"
    )
    rejection = refused("capabilities.a_c()", known)
    assert rejection.missing_tools
    assert rejection.missing_capabilities == ()


def test_what_stands_deeper_than_may_run_is_not_looked_for() -> None:
    chain = [described(f"x:c{n}", f"return capabilities.x_c{n + 1}();") for n in range(MAX_DEPTH)]
    analysis = calling("capabilities.x_c0()", library(*chain))
    assert [nested.name for nested in analysis.capabilities] == ["x:c0", "x:c1", "x:c2"]


def test_a_site_without_its_capability_lacks_no_tool() -> None:
    capability = Capability(READ_JSON, tools=(("fs", "gone"),))
    rejection = refused(
        "capabilities.fs_read_json(); capabilities.nope(); mcp.fs.read({});",
        Library({"fs_read_json": capability}),
    )
    assert [told.column for told in rejection.diagnostics] == [1, 30]
    assert KNOWN.unknown(()) == ()
