"""Results used by calls, and their coverage of the required inputs."""

import pytest

from pml_analysis.analysis import Analysis, analyze
from pml_analysis.arguments.data_flow_edges import Use, edges_of_uses
from pml_analysis.structure.edge_set import TooManyEdges
from pml_common.contracts.decision import Policy
from pml_common.contracts.structure import Edge
from pml_common.contracts.tool import JsonObject, ToolDefinition
from services.analyzer.tests.support.programs import analysed, provided, schema, tool


def _edges(analysis: Analysis) -> list[Edge]:
    return [edge for edge in analysis.structure.edges if edge.type == "provides"]


def _mapping(edge: Edge) -> list[tuple[str, str, bool]]:
    return [(m.from_field, m.to_field, m.type_compatible) for m in edge.field_mapping]


def test_a_part_that_is_all_another_call_needs_is_strict() -> None:
    analysis = analysed(
        "const r = await mcp.fs.read({ path: 'a' }); await mcp.json.parse({ json: r.content });"
    )
    (edge,) = _edges(analysis)
    assert (edge.from_, edge.to, edge.coverage) == ("n1", "n2", "strict")
    assert _mapping(edge) == [("content", "json", True)]


def test_some_of_what_is_needed_is_partial() -> None:
    analysis = analysed(
        "const p = await mcp.json.parse({ json: '' });"
        " await mcp.http.post({ url: p.url, body: 'x' });"
    )
    (edge,) = _edges(analysis)
    assert edge.coverage == "partial"
    assert _mapping(edge) == [("url", "url", True)]


def test_only_what_need_not_be_given_is_optional() -> None:
    analysis = analysed(
        "const s = await mcp.fs.stat({ path }); await mcp.fs.read({ path, limit: s.size });"
    )
    (edge,) = _edges(analysis)
    assert edge.coverage == "optional"
    assert _mapping(edge) == [("size", "limit", True)]


def test_types_that_cannot_meet_are_said_to() -> None:
    analysis = analysed(
        "const s = await mcp.fs.stat({ path }); await mcp.fs.read({ path: s.exists });"
    )
    (edge,) = _edges(analysis)
    assert _mapping(edge) == [("exists", "path", False)]


def test_a_whole_result_feeds_fields_under_their_own_names() -> None:
    analysis = analysed("const p = await mcp.json.parse({ json: '' }); await mcp.http.post(p);")
    (edge,) = _edges(analysis)
    assert edge.coverage == "strict"
    assert _mapping(edge) == [("url", "url", True), ("body", "body", True)]


def test_a_whole_result_may_feed_one_field() -> None:
    analysis = analysed("await mcp.json.parse({ json: await mcp.fs.read({ path }) });")
    (edge,) = _edges(analysis)
    assert (edge.from_, edge.to) == ("n2", "n1")
    assert _mapping(edge) == [("$", "json", False)]


def test_what_is_computed_from_a_result_covers_without_a_mapping() -> None:
    analysis = analysed(
        "const r = await mcp.fs.read({ path }); await mcp.json.parse({ json: `${r.content}` });"
    )
    (edge,) = _edges(analysis)
    assert (edge.coverage, edge.field_mapping) == ("strict", ())


def test_what_a_result_is_given_as_covers_though_nothing_is_said_of_the_result() -> None:
    analysis = analysed("const l = await mcp.fs.list({ path }); await mcp.fs.read({ path: l[0] });")
    (edge,) = _edges(analysis)
    assert edge.coverage == "strict"
    assert _mapping(edge) == [("[0]", "path", True)]


def test_fields_that_nothing_is_said_of_cover_nothing_under_their_own_names() -> None:
    analysis = analysed(
        "const l = await mcp.fs.list({ path }); await mcp.http.post({ ...l, body: l.text });"
    )
    (edge,) = _edges(analysis)
    assert edge.coverage == "partial"
    assert _mapping(edge) == [("text", "body", True)]


def test_arguments_inside_arguments_are_told_by_their_path() -> None:
    analysis = analysed(
        "const p = await mcp.json.parse({ json: '' });"
        " await mcp.http.post({ headers: { auth: { token: p.body }, ...p, n: p.url + 1 } });"
    )
    (edge,) = _edges(analysis)
    assert edge.coverage == "optional"
    assert _mapping(edge) == [("body", "headers.auth.token", True)]


def test_fields_go_into_an_argument_under_their_own_names() -> None:
    nested: JsonObject = {"properties": {"to": schema("url", "size")}, "required": ["to"]}
    taking = ToolDefinition(server="a", name="take", input_schema=nested)
    tools = (tool("a:give", gives=schema("url", "body")), taking)
    code = "const r = await mcp.a.give({}); await mcp.a.take({ to: { ...r } });"
    outcome = analyze(code, tools=tools, policy=Policy())
    assert isinstance(outcome, Analysis)
    (edge,) = _edges(outcome)
    assert edge.coverage == "strict"
    assert _mapping(edge) == [("url", "to.url", True)]


def test_what_goes_under_a_key_that_only_the_run_can_tell_covers_nothing() -> None:
    analysis = analysed(
        "const p = await mcp.json.parse({ json: '' }); await mcp.http.post({ [args.k]: p });"
    )
    (edge,) = _edges(analysis)
    assert (edge.coverage, edge.field_mapping) == (None, ())


def test_of_calls_without_a_tool_only_the_way_of_the_data_is_known() -> None:
    uses = [("n2", [Use("n1", ("a",), ("b",)), Use("n1", (), (), is_spread=True)])]
    (edge,) = edges_of_uses(uses, {}, limit=1)
    assert (edge.from_, edge.to, edge.coverage) == ("n1", "n2", None)
    assert _mapping(edge) == [("a", "b", True)]
    with pytest.raises(TooManyEdges):
        edges_of_uses(uses, {}, limit=0)


def test_a_field_the_consumer_does_not_know_covers_nothing() -> None:
    analysis = analysed("const s = await mcp.fs.stat({ path }); await mcp.fs.read({ x: s.size });")
    (edge,) = _edges(analysis)
    assert edge.coverage is None


@pytest.mark.parametrize(
    ("code", "edges"),
    [
        ("let c = 1; while (c) { c = await mcp.fs.list({ path: c }); }", ""),
        (
            "let c; for (;;) { await mcp.fs.read({ path: c }); c = await mcp.fs.list({}); }",
            "n2>n1:strict",
        ),
        (
            "const a = await mcp.fs.list({}), b = await mcp.fs.list({});"
            " await mcp.fs.read({ path: a + b });",
            "n1>n3:strict n2>n3:strict",
        ),
        ("await mcp.fs.read(); await mcp.fs.read({ path: 'a' });", ""),
    ],
    ids=["itself", "the round before", "two results", "nothing"],
)
def test_edges_follow_the_data(code: str, edges: str) -> None:
    assert provided(analysed(code)) == edges


@pytest.mark.parametrize(
    ("output", "path", "compatible"),
    [
        ({"type": "array", "items": {"type": "string"}}, "r[0]", True),
        ({"type": "array", "items": {"type": "object"}}, "r[0]", False),
        ({"properties": {"a": {"type": ["string", "null"]}}}, "r.a", True),
        ({"properties": {"a": True}}, "r.a", True),
        ({"properties": "odd"}, "r.a.b", True),
        ({"type": 3}, "r", True),
    ],
)
def test_output_schemas_are_read_along_the_path(
    output: JsonObject, path: str, compatible: bool
) -> None:
    tools = (tool("a:give", gives=output), tool("a:take", "x"))
    code = f"const r = await mcp.a.give({{}}); await mcp.a.take({{ x: {path} }});"
    outcome = analyze(code, tools=tools, policy=Policy())
    assert isinstance(outcome, Analysis)
    ((mapping,),) = [edge.field_mapping for edge in _edges(outcome)]
    assert mapping.type_compatible is compatible


def test_an_input_schema_that_says_nothing_covers_nothing() -> None:
    vague = ToolDefinition(server="a", name="take", input_schema={"required": "x"})
    code = "await mcp.a.take(await mcp.a.give({}));"
    tools = (tool("a:give", gives=schema("x")), vague)
    outcome = analyze(code, tools=tools, policy=Policy())
    assert isinstance(outcome, Analysis)
    (edge,) = _edges(outcome)
    assert (edge.coverage, edge.field_mapping) == (None, ())
