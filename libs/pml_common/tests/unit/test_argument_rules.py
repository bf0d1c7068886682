"""Policy rules on the arguments of single calls."""

import pytest
from pydantic import JsonValue

from pml_common.contracts.decision import ArgumentRule, Policy, PolicyRule, Verdict
from pml_common.contracts.json_values import same_json
from pml_common.contracts.policy_file import PolicyInvalid, parse_policies
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolDefinition

WRITE = ToolDefinition(server="fs", name="write")
UNDER = PolicyRule(
    pattern="fs:write*", arguments=(ArgumentRule(name="path", under="/work"),), verdict="allow"
)
NOT_ETC = PolicyRule(
    pattern="fs:*", arguments=(ArgumentRule(name="path", under="/etc"),), verdict="deny"
)


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("/work", "allow"),
        ("/work/a/b.txt", "allow"),
        ("/work/../etc/passwd", "ask"),
        ("//work/a", "ask"),
        ("\\\\work\\a", "ask"),
        ("/work/a%20b\\c", "allow"),
        ("/workshop/a", "ask"),
        ("/work/..\\etc", "ask"),
        ("/work/%2e%2e/etc", "ask"),
        ("/work/%2e.%5cetc", "ask"),
        ("/work/%252e%252e/etc", "ask"),
        ("/work/%25252e./etc", "ask"),
        ("/work/%25%32e%2e%255cetc", "ask"),
        ("/work/%2500/../../../etc", "ask"),
        ("/work/100%25", "allow"),
        ("/work/a%2520b", "allow"),
        ("/work/%" + "25" * 8 + "20", "ask"),
        ("/work/../etc\0/../../work", "ask"),
        ("work/a", "ask"),
        (7, "ask"),
    ],
)
def test_a_rule_allows_paths_under_a_folder_alone(path: JsonValue, verdict: Verdict) -> None:
    policy = Policy(rules=(UNDER,))
    assert policy.verdict_on(WRITE, {"path": path}, is_all=True)[0] == verdict


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("/etc/passwd", "deny"),
        ("//etc/passwd", "deny"),
        ("/work/..\\etc", "deny"),
        ("/%65tc", "deny"),
        ("/work/%2e%2e/etc", "deny"),
        ("/work/%252e%252e/etc", "deny"),
        ("/%2565tc", "deny"),
        ("/work/%" + "25" * 8 + "2e", "deny"),
        ("/home/%2565tc", "allow"),
        ("/home\\etc", "allow"),
        ("/home/etc", "allow"),
    ],
)
def test_a_rule_denies_what_any_server_may_read_as_under_its_folder(
    path: str, verdict: Verdict
) -> None:
    policy = Policy(rules=(NOT_ETC,), otherwise="allow")
    assert policy.verdict_on(WRITE, {"path": path}, is_all=True)[0] == verdict


def test_without_the_argument_the_rule_does_not_match() -> None:
    assert Policy(rules=(UNDER,)).verdict_on(WRITE, {}, is_all=True)[0] == "ask"


def test_unknown_arguments_get_the_strictest_possible_verdict() -> None:
    assert Policy(rules=(UNDER,)).verdict_on(WRITE, {})[0] == "ask"
    assert Policy(rules=(NOT_ETC,), otherwise="allow").verdict_on(WRITE)[0] == "deny"
    known: JsonObject = {"path": "/home/a"}
    assert Policy(rules=(NOT_ETC,), otherwise="allow").verdict_on(WRITE, known)[0] == "allow"


@pytest.mark.parametrize(
    ("rule", "value", "matches"),
    [
        (ArgumentRule(name="n", equals=True), True, True),
        (ArgumentRule(name="n", equals=True), 1, False),
        (ArgumentRule(name="n", equals=1), 1.0, True),
        (ArgumentRule(name="n", like="*.md"), "a.md", True),
        (ArgumentRule(name="n", like="*.md"), ["a.md"], False),
    ],
)
def test_an_argument_is_compared_as_json(
    rule: ArgumentRule, value: JsonValue, matches: bool
) -> None:
    assert rule.matches(value) is matches


def test_the_policy_file_has_rules_on_arguments() -> None:
    text = (
        '{"rules": [{"pattern": "fs:write*", "arguments": {"path": {"under": "/work"}},'
        ' "verdict": "allow"}], "computed": "park"}'
    )
    policy = parse_policies(text).of(Scope(org="a", project="b"))
    assert policy.rules == (UNDER,)
    assert policy.computed == "park"


@pytest.mark.parametrize(
    ("argument", "fault"),
    [
        ('{"under": "work"}', "absolute path"),
        ("{}", "takes one of under, equals, like"),
        ('{"under": "/a", "like": "*"}', "takes one of under, equals, like"),
        ('{"over": "/a"}', "is not a known field"),
    ],
)
def test_an_invalid_argument_rule_is_reported(argument: str, fault: str) -> None:
    rule = f'{{"pattern": "fs:*", "arguments": {{"path": {argument}}}, "verdict": "ask"}}'
    text = f'{{"rules": [{rule}]}}'
    with pytest.raises(PolicyInvalid, match=fault):
        parse_policies(text)


def test_every_change_is_another_revision() -> None:
    assert Policy().revision == Policy().revision
    assert Policy().revision != Policy(computed="park").revision


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (True, 1, False),
        (1, True, False),
        (0, False, False),
        (1, 1.0, True),
        (-0.0, 0, True),
        (2**53, 2**53 + 1, True),
        (10**400, 10**401, True),
        (-(10**400), 10**400, False),
        ("1", 1, False),
        (None, None, True),
        (None, False, False),
        ({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1, 2], [2, 1], False),
        ([1], [1, 2], False),
        ([], {}, False),
    ],
)
def test_values_are_the_same_where_their_canonical_json_is(
    one: JsonValue, other: JsonValue, same: bool
) -> None:
    assert same_json(one, other) is same
