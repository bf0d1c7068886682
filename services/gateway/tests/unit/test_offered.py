"""Names and URIs under which our clients see what MCP servers offer."""

from dataclasses import replace

import pytest

from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.tool import JsonObject
from pml_gateway.adapters.mcp_client.uri_templates import fits
from pml_gateway.domain.api.errors import Conflict, InvalidRequest, NotFound
from pml_gateway.domain.api.offered import Offered, may_read, permitted, with_links
from pml_gateway.domain.api.pages import PAGE, page_of
from pml_gateway.domain.servers.offers import Offers, distinct

HERE: JsonObject = {"uri": "file:///a", "name": "a", "_meta": {"own": 1}}
THERE: JsonObject = {"uri": "file:///a", "name": "another a"}
ALONE: JsonObject = {"uri": "db://b", "name": "b"}
ANY_FILE: JsonObject = {"uriTemplate": "file:///{name}", "name": "files"}
ANY_DB: JsonObject = {"uriTemplate": "db://{name}", "name": "tables"}
GREET: JsonObject = {"name": "greet", "title": "Greet somebody"}
OFFERS = {
    "fs": Offers((HERE, ALONE), (ANY_FILE,), (GREET,)),
    "a b": Offers((THERE,), (ANY_FILE, ANY_DB), ({"name": "say it"},)),
}
OFFERED = Offered(OFFERS, fits)


def test_a_resource_keeps_its_uri_where_one_server_alone_has_it() -> None:
    assert OFFERED.resources() == [
        {**ALONE, "_meta": {"pml/server": "fs"}},
        {**THERE, "uri": "pml://a%20b/file:///a", "_meta": {"pml/server": "a b"}},
        {**HERE, "uri": "pml://fs/file:///a", "_meta": {"own": 1, "pml/server": "fs"}},
    ]
    assert [each["uriTemplate"] for each in OFFERED.templates()] == [
        "db://{name}",
        "pml://a%20b/file:///{name}",
        "pml://fs/file:///{name}",
    ]


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("db://b", ("fs", "db://b")),
        ("db://c", ("a b", "db://c")),
        ("pml://a%20b/file:///a", ("a b", "file:///a")),
        ("pml://fs/unlisted:x", ("fs", "unlisted:x")),
    ],
)
def test_a_resource_is_found_by_listing_then_template_and_under_its_server(
    uri: str, found: tuple[str, str]
) -> None:
    assert OFFERED.resource(uri) == found


@pytest.mark.parametrize("uri", ["web://x", "pml://gone/file:///a", "pml://fs"])
def test_what_no_server_has_is_not_found(uri: str) -> None:
    with pytest.raises(NotFound, match="no resource"):
        OFFERED.resource(uri)


@pytest.mark.parametrize("uri", ["file:///a", "file:///unlisted"])
def test_a_resource_of_several_servers_is_a_conflict_that_names_the_ways(uri: str) -> None:
    with pytest.raises(Conflict, match=rf"read pml://fs/{uri} or pml://a%20b/{uri}"):
        OFFERED.resource(uri)


def test_a_template_is_found_as_it_is_listed() -> None:
    assert OFFERED.template("db://{name}") == ("a b", "db://{name}")
    assert OFFERED.template("pml://fs/file:///{name}") == ("fs", "file:///{name}")
    with pytest.raises(NotFound):
        OFFERED.template("file:///{name}")


def test_a_link_is_kept_where_it_leads_to_its_own_server() -> None:
    assert OFFERED.link("fs", "db://b") == "db://b"
    assert OFFERED.link("fs", "file:///a") == "pml://fs/file:///a"
    assert OFFERED.link("a b", "db://b") == "pml://a%20b/db://b"
    result: JsonObject = {
        "content": [
            {"type": "text", "text": "see"},
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
            {"type": "resource_link", "name": "without"},
        ],
    }
    linked = with_links(result, lambda uri: OFFERED.link("fs", uri))
    content = linked["content"]
    assert isinstance(content, list)
    assert content[1] == {"type": "resource_link", "uri": "pml://fs/file:///a", "name": "a"}
    assert content[2] == {"type": "resource_link", "name": "without"}
    plain: JsonObject = {"content": [{"type": "text", "text": "see"}]}
    assert with_links(plain, str.upper) is plain
    assert with_links({}, str.upper) == {}


def test_prompts_are_named_like_tools_and_keep_their_titles() -> None:
    assert OFFERED.prompts() == [
        {"name": "a_b_say_it", "title": "a b:say it", "_meta": {"pml/server": "a b"}},
        {"name": "fs_greet", "title": "Greet somebody", "_meta": {"pml/server": "fs"}},
    ]
    assert OFFERED.prompt("fs_greet") == OFFERED.prompt("fs:greet") == ("fs", "greet")
    with pytest.raises(NotFound, match="did you mean fs_greet"):
        OFFERED.prompt("fs_greed")


def test_prompts_of_a_bare_server_have_their_own_names() -> None:
    bare = {"fs": replace(OFFERS["fs"], prefixed=False), "a b": OFFERS["a b"]}
    asks = Policy(rules=(PolicyRule(pattern="fs:resources/file:*", verdict="ask"),))
    for offered in (Offered(bare, fits), Offered(permitted(bare, asks), fits)):
        assert offered.prompt("greet") == offered.prompt("fs:greet") == ("fs", "greet")
        assert offered.prompt("a_b_say_it") == ("a b", "say it")


def test_a_policy_hides_what_it_does_not_allow_at_once() -> None:
    assert permitted(OFFERS, Policy()) is OFFERS
    asks = Policy(rules=(PolicyRule(pattern="fs:resources/file:*", verdict="ask"),))
    assert permitted(OFFERS, asks) == {**OFFERS, "fs": Offers((ALONE,), (), (GREET,))}
    denies = Policy(rules=(PolicyRule(pattern="fs:*", verdict="deny"),))
    assert permitted(OFFERS, denies) == {**OFFERS, "fs": Offers()}
    assert permitted(OFFERS, Policy(read_only="ask")) == {"fs": Offers(), "a b": Offers()}
    assert may_read(denies, "a b", "resources/file:///a")
    assert not may_read(denies, "fs", "resources/file:///a")


def test_a_malformed_template_fits_nothing() -> None:
    assert not fits("file:///{", "file:///a")
    assert not fits("file:///{name}", "web://a")


def test_items_that_share_a_key_are_left_out_together() -> None:
    kept, faults = distinct((HERE, THERE, ALONE), "uri")
    assert kept == (ALONE,)
    assert faults == ["file:///a: listed 2 times, so none of them is used"]


def test_pages_follow_the_keys_and_survive_changes_between_them() -> None:
    listed: list[JsonObject] = [{"uri": f"x:{number:04}"} for number in range(PAGE + 2)]
    first, cursor = page_of(listed, "uri", None)
    assert (len(first), cursor is None) == (PAGE, False)
    changed: list[JsonObject] = [{"uri": "x:"}, *listed[5:]]
    assert page_of(changed, "uri", cursor) == (listed[PAGE:], None)
    assert page_of([], "uri", None) == ([], None)
    with pytest.raises(InvalidRequest, match="cursor"):
        page_of(listed, "uri", "?")
