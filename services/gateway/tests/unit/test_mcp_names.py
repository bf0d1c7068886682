"""Listed names: valid for clients, unique, and never passed from one tool to another."""

import re

from hypothesis import given
from hypothesis import strategies as st

from pml_gateway.domain.api.mcp_names import (
    MAX_NAME,
    how_to_call_capability,
    how_to_call_tool,
    kept_prefixes,
    listed_names,
)

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")
SIMILAR = st.text(alphabet="ab_-:.é", min_size=1, max_size=4)
IDS = st.sets(
    st.builds("{}:{}".format, SIMILAR, SIMILAR | st.text(min_size=1, max_size=90)), max_size=12
)


def test_a_plain_id_keeps_its_words() -> None:
    assert listed_names(["fs:read", "my-server:read_file"]) == {
        "fs:read": "fs_read",
        "my-server:read_file": "my-server_read_file",
    }


def test_ids_that_would_share_a_name_all_carry_their_hash() -> None:
    names = listed_names(["a:b_c", "a_b:c", "x:y"])
    assert names["x:y"] == "x_y"
    assert re.fullmatch(r"a_b_c_[0-9a-f]{8}", names["a:b_c"])
    assert re.fullmatch(r"a_b_c_[0-9a-f]{8}", names["a_b:c"])


def test_no_tool_of_a_server_takes_a_name_that_a_capability_may_have() -> None:
    (name,) = listed_names(["cap_fs:tidy"]).values()
    assert re.fullmatch(r"cap_fs_tidy_[0-9a-f]{8}", name)


def test_a_name_that_equals_anothers_hashed_name_is_hashed() -> None:
    hashed = listed_names(["a:b_c", "a_b:c"])["a:b_c"]
    assert hashed.startswith("a_b_c_")
    names = listed_names(["a:b_c", "a_b:c", hashed.replace("a_", "a:", 1)])
    assert len(set(names.values())) == 3


def test_a_reserved_name_is_not_used() -> None:
    names = listed_names(["pml:execute"], reserved=["pml_execute"])
    assert re.fullmatch(r"pml_execute_[0-9a-f]{8}", names["pml:execute"])


def test_a_long_name_is_cut_and_hashed() -> None:
    first, second = (f"server:{'x' * 80}{end}" for end in "ab")
    names = listed_names([first, second])
    assert len(names[first]) == len(names[second]) == MAX_NAME
    assert names[first] != names[second]


@given(IDS)
def test_every_name_is_valid_and_unique(ids: set[str]) -> None:
    names = listed_names(ids, reserved=["a_b"])
    assert names.keys() == ids
    assert all(VALID.fullmatch(name) for name in names.values())
    assert len(set(names.values())) == len(ids)
    assert "a_b" not in names.values()


@given(IDS.flatmap(lambda ids: st.permutations(sorted(ids))))
def test_the_order_of_the_ids_does_not_matter(ids: list[str]) -> None:
    assert listed_names(ids) == listed_names(sorted(ids))


@given(IDS, IDS)
def test_no_name_passes_to_another_tool_when_others_come(old: set[str], new: set[str]) -> None:
    before = {name: tool_id for tool_id, name in listed_names(old).items()}
    after = {name: tool_id for tool_id, name in listed_names(old | new).items()}
    for name in before.keys() & after.keys():
        assert before[name] == after[name]


def test_tools_of_a_bare_server_have_their_own_names() -> None:
    ids = ["fs:read", "jobs:run.all", "jobs:run"]
    assert listed_names(ids, (), ["jobs"]) == {
        "fs:read": "fs_read",
        "jobs:run.all": "run_all",
        "jobs:run": "run",
    }
    assert kept_prefixes(ids, ["jobs"]) == {}


def test_an_own_name_that_another_tool_could_have_is_not_used() -> None:
    ids = ["a:read", "b:read", "b:fs_read", "b:x", "fs:read", f"b:{'y' * 65}", "b:cap_z", "b:pml_z"]
    names = listed_names(ids, ["x"], ["a", "b"])
    assert (names["a:read"], names["b:read"]) == ("a_read", "b_read")
    assert (names["b:fs_read"], names["fs:read"]) == ("b_fs_read", "fs_read")
    assert (names["b:x"], names["b:cap_z"], names["b:pml_z"]) == ("b_x", "b_cap_z", "b_pml_z")
    kept = kept_prefixes(ids, ["a", "b"])
    assert kept.keys() == {*ids} - {"fs:read", "b:x"}
    assert kept["b:read"] == "b_read"


@given(IDS, IDS, st.sets(SIMILAR))
def test_names_with_bare_servers_are_unique_and_pass_to_no_third_tool(
    old: set[str], new: set[str], bare: set[str]
) -> None:
    names = listed_names(old | new, (), bare)
    assert names.keys() == old | new
    assert len(set(names.values())) == len(names)
    assert all(VALID.fullmatch(name) for name in names.values())
    before = {name: tool_id for tool_id, name in listed_names(old, (), bare).items()}
    after = {name: tool_id for tool_id, name in names.items()}
    for name in before.keys() & after.keys():
        assert after[name] == before[name] or after[name] not in old


def test_names_of_programs_are_explained() -> None:
    listed = {"fs:read": "fs_read", "web:read": "web_read"}
    both = how_to_call_tool("read", listed)
    assert both == (
        "no tool 'read': call fs_read (inside pml_execute: `await mcp.call(\"fs:read\", {…})`) or "
        'web_read (inside pml_execute: `await mcp.call("web:read", {…})`)'
    )
    one = how_to_call_tool("mcp.web.read", listed)
    assert one is not None
    assert "fs_read" not in one
    assert how_to_call_tool("write", listed) is None
    assert how_to_call_capability("my-fs:tidy") == (
        "no tool 'my-fs:tidy': it is a capability. Run it with pml_execute {\"capability\": "
        '"my-fs:tidy", "args": {}}, or inside a program with `await capabilities.my_fs_tidy({…})`'
    )
