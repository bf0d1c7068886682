"""Provides edges from schemas alone."""

from collections.abc import Iterable, Iterator
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pml_common.contracts.provides import ProvidesEdge
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.provides.coverage import Provision, compute_coverage
from pml_common.provides.tool_edges import create_provides_edges

STRING: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "number"}
LINKS: JsonObject = {
    "type": "object",
    "properties": {
        "results": {
            "type": "array",
            "items": {"type": "object", "properties": {"url": STRING, "score": NUMBER}},
        }
    },
}
CHART: JsonObject = {
    "type": "array",
    "items": {"type": "object", "properties": {"value": NUMBER}, "required": ["value"]},
}


def fields(*required: str, **optional: JsonObject) -> JsonObject:
    """Return the schema of an object with required and optional text fields."""
    properties: dict[str, JsonValue] = {**dict.fromkeys(required, STRING), **optional}
    return {"type": "object", "properties": properties, "required": list(required)}


def needs(**required: JsonValue) -> JsonObject:
    """Return the schema of an object with these fields, all required."""
    return {"type": "object", "properties": required, "required": list(required)}


def shown(found: Provision) -> str:
    """Render a provision: `strict: content>json`; a question mark marks a wrong type."""
    parts = [
        f"{part.from_field}>{part.to_field}{'' if part.type_compatible else '?'}"
        for part in found.field_mapping
    ]
    return f"{found.coverage}: {' '.join(parts)}"


READ, PARSE, POST = fields("content"), fields("json"), fields("url", "body", headers={})
PARSED: JsonObject = {"type": "object", "properties": {"result": {}}}
CASES: dict[str, tuple[JsonObject, JsonObject, str]] = {
    "the sources' strict case": (READ, PARSE, "strict: content>json"),
    "the sources' partial case": (PARSED, POST, "partial: result>body"),
    "a result without fields of its own": ({}, POST, "partial: $>body"),
    "the same name": (fields("url"), fields("url"), "strict: url>url"),
    "other fields too": (fields("url", "size"), fields("url"), "strict: url>url"),
    "only what need not be given": (fields("headers"), POST, "optional: headers>headers"),
    "nothing is required": (fields("url"), fields(url=STRING), "optional: url>url"),
    "nothing in common": (fields("url"), fields("ticker"), "None: "),
    "texts are not alike because they are texts": (fields("city"), fields("query"), "None: "),
    "another way to write the name": (
        fields("file_name", "repoPath"),
        fields("fileName", "repo-path"),
        "strict: file_name>fileName repoPath>repo-path",
    ),
    "the same name goes before one like it": (
        fields("file_name", "fileName"),
        fields("fileName"),
        "strict: fileName>fileName",
    ),
    "the right type goes before the same name": (
        needs(userId=NUMBER, user_id=STRING),
        fields("userId"),
        "strict: user_id>userId",
    ),
    "the same name with another type covers nothing": (
        needs(url=NUMBER),
        fields("url"),
        "None: url>url?",
    ),
    "and is told beside what is covered": (
        needs(url=NUMBER, body=STRING),
        fields("url", "body"),
        "partial: url>url? body>body",
    ),
    "elements of a list, one call each": (
        needs(urls={"type": "array", "items": STRING}),
        fields("url"),
        "strict: urls[]>url",
    ),
    "a part of every element": (LINKS, fields("url"), "strict: results[].url>url"),
    "parts of all elements": (
        LINKS,
        needs(urls={"type": "array", "items": STRING}),
        "strict: results[].url>urls",
    ),
    "parts of all elements, of the wrong type": (
        LINKS,
        needs(scores={"type": "array", "items": STRING}),
        "None: ",
    ),
    "a list at the top": (
        {"type": "array", "items": needs(url=STRING)},
        fields("url"),
        "strict: [].url>url",
    ),
    "the outer of two": (
        needs(url=STRING, page=needs(url=STRING)),
        fields("url"),
        "strict: url>url",
    ),
    "deeper than people look": (
        needs(a=needs(b=needs(c=needs(url=STRING)))),
        fields("url"),
        "None: ",
    ),
    "a payload inside something": (needs(page=needs(text=STRING)), fields("body"), "None: "),
    "what steers a call": (needs(limit=NUMBER), needs(limit=NUMBER), "None: "),
    "formats that differ": (fields("html"), fields("json"), "None: "),
    "a format for anything": (fields("html"), fields("content"), "strict: html>content"),
    "a payload of the wrong type": (needs(result=NUMBER), fields("body"), "None: "),
    "a payload that lacks what is demanded": (
        needs(result={"type": "array", "items": needs(name=STRING)}),
        needs(data=CHART),
        "None: ",
    ),
    "a payload of which too little is known": (PARSED, needs(data=CHART), "None: "),
    "a payload that has it": (
        needs(result={"type": "array", "items": needs(value=NUMBER, name=STRING)}),
        needs(data=CHART),
        "strict: result>data",
    ),
    "no fields": ({"type": "object"}, {"type": "object"}, "None: "),
}


@pytest.mark.parametrize(("outputs", "inputs", "expected"), CASES.values(), ids=CASES)
def test_coverage_follows_from_the_schemas(
    outputs: JsonObject, inputs: JsonObject, expected: str
) -> None:
    found = compute_coverage(outputs, inputs)
    assert shown(found) == expected
    assert (found.provider_output_schema, found.consumer_input_schema) == (outputs, inputs)


def test_a_payload_is_compared_to_three_levels() -> None:
    def listed(deepest: str) -> JsonObject:
        return {"type": "array", "items": needs(a=needs(b=needs(**{deepest: STRING})))}

    inputs = needs(data=listed("c"))
    assert compute_coverage(needs(result=listed("other")), inputs).coverage == "strict"
    other: JsonObject = {"type": "array", "items": needs(a=needs(other=STRING))}
    assert compute_coverage(needs(result=other), inputs).coverage is None


NAMES = st.sets(st.sampled_from(["url", "path", "ticker", "json", "city"]))


@given(NAMES, NAMES, NAMES, NAMES)
def test_more_outputs_never_cover_less(
    outputs: set[str], more: set[str], required: set[str], optional: set[str]
) -> None:
    order = (None, "optional", "partial", "strict")
    inputs = fields(*required, **dict.fromkeys(optional - required, STRING))
    less = compute_coverage(fields(*outputs), inputs).coverage
    found = compute_coverage(fields(*outputs, *more), inputs).coverage
    assert order.index(found) >= order.index(less)


def tool(tool_id: str, takes: JsonObject, gives: JsonObject | None = None) -> ToolDefinition:
    server, _, name = tool_id.partition(":")
    return ToolDefinition(server=server, name=name, input_schema=takes, output_schema=gives)


def edges(*tools: ToolDefinition) -> list[str]:
    """Render an edge: `fs:read>json:parse:strict`."""
    found = create_provides_edges(tools)
    return [f"{edge.from_}>{edge.to}:{edge.coverage}" for edge in found]


def test_a_catalog_has_an_edge_for_every_pair_that_fits() -> None:
    assert edges(
        tool("fs:read", fields("path"), READ),
        tool("json:parse", PARSE, PARSED),
        tool("http:post", POST),
        tool("fs:find", fields("pattern"), needs(paths={"type": "array", "items": STRING})),
        tool("mail:check", fields("folder")),
    ) == [
        "fs:read>json:parse:strict",
        "fs:read>http:post:partial",
        "json:parse>http:post:partial",
        "fs:find>fs:read:strict",
    ]


def test_of_changed_tools_exactly_the_pairs_with_one_of_them_are_compared() -> None:
    tools = [
        tool("fs:read", fields("path"), READ),
        tool("json:parse", PARSE, PARSED),
        tool("http:post", POST),
        tool("fs:find", fields("pattern"), needs(paths={"type": "array", "items": STRING})),
    ]
    every = create_provides_edges(tools)
    for changed in powerset(each.tool_id for each in tools):
        touched = [edge for edge in every if edge.from_ in changed or edge.to in changed]
        assert create_provides_edges(tools, changed) == touched


def powerset(ids: Iterable[str]) -> Iterator[tuple[str, ...]]:
    listed = list(ids)
    return chain.from_iterable(combinations(listed, n) for n in range(len(listed) + 1))


def test_an_edge_shows_both_schemas() -> None:
    (edge,) = create_provides_edges([tool("fs:read", {}, READ), tool("json:parse", PARSE)])
    assert ProvidesEdge.model_validate(edge.model_dump(mode="json")) == edge
    assert edge.model_dump(mode="json") == {
        "from": "fs:read",
        "to": "json:parse",
        "type": "provides",
        "coverage": "strict",
        "provider_output_schema": READ,
        "consumer_input_schema": PARSE,
        "field_mapping": [{"from_field": "content", "to_field": "json", "type_compatible": True}],
    }


def test_a_tool_does_not_feed_itself() -> None:
    assert edges(tool("fs:touch", fields("path"), fields("path"))) == []


def test_between_servers_a_relative_name_is_not_enough() -> None:
    user = tool("users:get", fields("name"), fields("id", "name", "email"))
    order = tool("orders:get", fields("id"))
    mail = tool("mail:send", fields("name", "email"))
    assert edges(user, order, mail) == ["users:get>mail:send:strict"]
    assert edges(user, tool("users:drop", fields("id"))) == ["users:get>users:drop:strict"]


def test_names_that_meet_with_the_wrong_types_make_no_edge() -> None:
    assert edges(tool("a:give", {}, needs(url=NUMBER)), tool("b:take", fields("url"))) == []


def test_of_a_large_result_the_outer_fields_count() -> None:
    many: dict[str, JsonValue] = {f"f{number}": STRING for number in range(400)}
    outputs: JsonObject = {"properties": {**many, "url": STRING}}
    assert compute_coverage(outputs, fields("f255")).coverage == "strict"
    assert compute_coverage(outputs, fields("url")).coverage is None
