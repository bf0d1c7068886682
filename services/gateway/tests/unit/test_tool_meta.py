"""`_meta` and icons as parts of a tool's definition."""

from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.domain.api.mcp_tools import definitions_of
from pml_gateway.domain.servers.tool_meta import (
    has_meta,
    icons_of,
    meta_of,
    passed_meta,
    shown_with,
    unstable_keys,
)


def tool(name: str = "a", **more: object) -> JsonObject:
    return {"name": name, "inputSchema": {}, **more}  # pyright: ignore[reportReturnType]


def hash_of(one: JsonObject) -> str:
    (found,), _ = definitions_of("fs", [one], trusted=True)
    return found.definition_hash


def test_meta_and_icons_change_the_hash() -> None:
    icons = [{"src": "data:image/png;base64,AAAA"}]
    variants = [
        tool(),
        tool(_meta={"a": 1}),
        tool(_meta={"a": 2}),
        tool(_meta={"b": 1}),
        tool(icons=icons),
        tool(icons=[*icons, *icons]),
        tool(icons=icons, _meta={"a": 1}),
    ]
    assert len({hash_of(one) for one in variants}) == len(variants)


def test_a_definition_without_them_says_and_hashes_nothing_of_them() -> None:
    bare = ToolDefinition(server="fs", name="a", input_schema={})
    assert hash_of(tool(_meta=None, icons=None)) == hash_of(tool(_meta={}, icons=[]))
    assert {"meta", "icons", "claims"}.isdisjoint(bare.model_dump(mode="json"))
    assert hash_of(tool()) == bare.definition_hash


def test_what_is_not_said_of_an_icon_is_left_out() -> None:
    said = {"src": "a.png", "mimeType": None, "sizes": ["48x48"]}
    assert icons_of(tool(icons=[said, "no icon"])) == [{"src": "a.png", "sizes": ["48x48"]}]


def test_long_texts_are_told_by_their_digest() -> None:
    one, other = ({"deep": [{"data": letter * 2000}]} for letter in "xy")
    told = meta_of(tool(_meta=one))
    assert str(told["deep"]).startswith("[{'data': 'sha256:")
    assert len(str(told)) < 200
    assert meta_of(tool(_meta=other)) != told
    assert meta_of(tool(_meta={"short": "x" * 1024})) == {"short": "x" * 1024}
    assert str(meta_of(tool(_meta={"half": "\ud800" * 2000}))["half"]).startswith("sha256:")


def test_keys_that_differ_between_two_listings_are_left_out() -> None:
    first = [tool(_meta={"version": 1, "at": 10, "once": 1}), tool("gone", _meta={"at": 1})]
    second = [tool(_meta={"version": 1, "at": 20, "late": 1}), tool("new", _meta={"at": 2})]
    unstable = unstable_keys(first, second)
    assert unstable == {("a", "at"), ("a", "once"), ("a", "late")}
    assert meta_of(second[0], unstable) == {"version": 1}
    assert meta_of(second[1], unstable) == {"at": 2}
    assert not unstable_keys(second, second)


def test_only_listings_with_meta_are_worth_a_second_look() -> None:
    assert has_meta([tool(), tool(_meta={"a": 1})])
    assert not has_meta([tool(), tool(_meta={}), tool(_meta=None)])


def test_what_a_server_shows_with_a_tool_is_passed_on_unless_it_is_long_or_the_protocols() -> None:
    long = [{"src": f"data:image/png;base64,{'A' * 20_000}"}]
    meta: JsonObject = {"ui/resource": "ui://a", "io.modelcontextprotocol/x": 1, "pml/tool": "b:c"}
    execution: JsonObject = {"taskSupport": "optional"}
    shown = shown_with(tool(_meta=meta, icons=long, execution=execution))
    assert shown == {"_meta": {"ui/resource": "ui://a"}, "execution": execution}
    icons = [{"src": "data:image/png;base64,AAAA", "mimeType": None}]
    assert shown_with(tool(icons=icons, execution={"taskSupport": None})) == {
        "icons": [{"src": "data:image/png;base64,AAAA"}]
    }
    assert shown_with(tool(_meta=None)) == {}
    assert passed_meta("no object") == {}
