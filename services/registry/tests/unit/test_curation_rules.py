"""Suggested names by rules."""

from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.capability import Usage
from pml_common.contracts.display_names import parse_display_name
from pml_registry.domain.curation import (
    Unnamed,
    choose,
    clusters,
    drafts,
    namespace_of,
    with_proposals,
)

KEY = UUID(int=7)


def unnamed(
    description: str = "", *tools: str, key: str = "a", runs: int = 0, successes: int = 0
) -> Unnamed:
    return Unnamed(
        capability_id=uuid5(KEY, key),
        name=f"unnamed_{key}",
        owner="agent-7",
        description=description,
        tools_used=tools,
        code="",
        usage=Usage(count=runs, success_count=successes),
    )


def named(*capabilities: Unnamed, taken: tuple[str, ...] = ()) -> list[str]:
    return [each.name for each in choose(drafts(capabilities), taken)]


@pytest.mark.parametrize(
    ("tools", "namespace"),
    [
        (["fs:read", "filesystem:write"], "fs"),
        (["github:create_issue"], "git"),
        (["postgres:run"], "db"),
        (["crm:query"], "db"),
        (["http:get", "http:post", "json:parse"], "api"),
        (["crm:lookup", "crm:update", "fs:read"], "fs"),
        (["Acme CRM:lookup"], "acme-crm"),
        (["dns:lookup"], "util"),
        (["9lives:a"], "util"),
        ([], "util"),
    ],
)
def test_a_namespace_is_that_of_most_tools(tools: list[str], namespace: str) -> None:
    assert namespace_of(tools)[0] == namespace


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        (unnamed("Read the JSON settings file, please", "fs:read"), "fs:read_json_settings"),
        (unnamed("Lire le fichier de réglages", "fs:read"), "fs:lire_fichier_reglages"),
        (unnamed("3 newest files\nof all", "fs:list"), "fs:newest_files"),
        (unnamed("", "fs:read", "fs:writeFile"), "fs:read_write_file"),
        (unnamed("設定を読む", "fs:read"), "fs:read"),
        (unnamed("the", "fs:9"), "fs:run"),
        (unnamed("", "fs:7"), "fs:run"),
    ],
)
def test_an_action_is_made_of_the_intent_or_the_tools(capability: Unnamed, name: str) -> None:
    assert named(capability) == [name]


def test_a_taken_name_gets_a_further_word_then_a_number() -> None:
    same = [unnamed("Read settings", "fs:load", key=key) for key in "abc"]
    assert named(*same, taken=("fs_read_settings",)) == [
        "fs:read_settings_load",
        "fs:read_settings_2",
        "fs:read_settings_3",
    ]
    (suggestion,) = choose(drafts(same[:1]), {"fs_read_settings"})
    (free,) = choose(drafts(same[:1]), ())
    assert "fs:read_settings is taken" in suggestion.reasons
    assert suggestion.confidence == pytest.approx(free.confidence - 0.2)


def test_without_a_free_name_none_is_suggested() -> None:
    (draft,) = drafts([unnamed("Read settings", "fs:load")])
    assert choose([draft], {callable_name(name) for name in draft.names}) == []
    assert draft.names[-1].endswith(unnamed().capability_id.hex[-8:])


def test_long_names_are_shortened() -> None:
    words = " ".join(letter * 30 for letter in "abcd")
    (draft,) = drafts([unnamed(words, f"{'s' * 40}:t")])
    assert all(parse_display_name(name) for name in draft.names)
    assert len(draft.names) > 1


def test_evidence_adds_to_confidence() -> None:
    weak = unnamed("", "crm:lookup", key="a")
    one_word = unnamed("contacts", "crm:lookup", key="b")
    intent = unnamed("find contacts", "crm:lookup", key="c")
    agreed = unnamed("lookup contacts", "crm:lookup", key="d")
    used = unnamed("lookup contacts", "crm:lookup", key="e", runs=9, successes=9)
    failing = unnamed("lookup contacts", "crm:lookup", key="f", runs=99, successes=9)
    order = [weak, intent, agreed, failing, used]
    values = [choose(drafts([each]), ())[0].confidence for each in order]
    assert values == sorted(values)
    assert len(set(values)) == len(values)
    assert choose(drafts([one_word]), ())[0].confidence == values[0]
    sure = unnamed("read file", "fs:read_file", runs=9, successes=9)
    assert choose(drafts([sure]), ())[0].confidence == 1.0


def test_a_cluster_shares_most_tools_and_has_one_namespace() -> None:
    first = unnamed("a b", "fs:read", "json:parse", key="a")
    second = unnamed("c d", "json:parse", "fs:read", "fs:write", key="b")
    other = unnamed("e f", "git:diff", key="c")
    bridge = unnamed("g h", "git:diff", "git:log", key="d")
    assert clusters([first, other, second, bridge]) == [[first, second], [other, bridge]]
    made = drafts([first, other, second, bridge])
    assert [draft.names[0].partition(":")[0] for draft in made] == ["fs", "git", "fs", "git"]
    assert "1 more use the same tools" in made[0].reasons


def test_a_model_names_where_the_name_is_valid_and_free() -> None:
    same = [unnamed("Read settings", "fs:load", key=key) for key in "abcd"]
    proposed = {
        same[0].capability_id: "fs:load_settings",
        same[1].capability_id: "conf:load_settings",
        same[2].capability_id: "Not a name",
    }
    drafted = with_proposals(drafts(same), proposed)
    found = choose(drafted, ())
    assert [(each.name, each.source) for each in found] == [
        ("fs:load_settings", "model"),
        ("conf:load_settings", "model"),
        ("fs:read_settings", "rules"),
        ("fs:read_settings_load", "rules"),
    ]
    assert found[0].confidence > found[1].confidence
    taken = choose(drafted[:1], {"fs_load_settings"})
    assert (taken[0].name, taken[0].source) == ("fs:load_settings_2", "rules")


@given(
    st.lists(
        st.tuples(st.text(max_size=60), st.lists(st.text(max_size=12), max_size=4)), max_size=8
    )
)
def test_suggestions_are_valid_different_names_whatever_is_said(
    told: list[tuple[str, list[str]]],
) -> None:
    capabilities = [
        unnamed(description, *tools, key=str(at)) for at, (description, tools) in enumerate(told)
    ]
    found = choose(drafts(capabilities), {"fs_read"})
    assert len(found) == len(capabilities)
    assert len({callable_name(each.name) for each in found} | {"fs_read"}) == len(found) + 1
    for each in found:
        parse_display_name(each.name)
        assert 0 <= each.confidence <= 1
