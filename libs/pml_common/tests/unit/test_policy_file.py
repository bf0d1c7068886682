"""The policy file: its fields, and reports of its faults."""

import json

import pytest
from pydantic import JsonValue

from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.policy_file import Policies, PolicyInvalid, parse_policies
from pml_common.contracts.scope import Scope

OURS, THEIRS = Scope(org="acme", project="webapp"), Scope(org="acme", project="mobile")


def _parsed(document: JsonValue) -> Policies:
    return parse_policies(json.dumps(document))


def test_an_empty_file_is_the_default_policy_for_all() -> None:
    assert _parsed({}) == Policies()
    assert _parsed({}).of(OURS) == Policy()


def test_a_file_may_use_every_field() -> None:
    policies = _parsed(
        {
            "rules": [{"pattern": "fs:write_*", "verdict": "allow"}],
            "read_only": "ask",
            "otherwise": "deny",
        }
    )
    assert policies.of(OURS) == Policy(
        rules=(PolicyRule(pattern="fs:write_*", verdict="allow"),),
        read_only="ask",
        otherwise="deny",
    )


def test_a_listed_scope_has_only_its_own_policy() -> None:
    policies = _parsed(
        {
            "rules": [{"pattern": "fs:*", "verdict": "allow"}],
            "scopes": {"acme.webapp": {"otherwise": "deny"}},
        }
    )
    assert policies.of(OURS) == Policy(otherwise="deny")
    assert policies.of(THEIRS).rules[0].pattern == "fs:*"


FAULTS: dict[str, tuple[str, list[str]]] = {
    "no JSON": ("{", ["not JSON: Expecting property name"]),
    "no object": ("[]", ["must be an object"]),
    "an unknown field": ('{"rule": []}', ["rule: is not a known field"]),
    "an unknown field of a rule": (
        '{"rules": [{"pattern": "fs:*", "verdict": "ask", "tool": "x"}]}',
        ["rules.0.tool: is not a known field"],
    ),
    "an unknown verdict": (
        '{"rules": [{"pattern": "fs:*", "verdict": "maybe"}]}',
        ["rules.0.verdict: must be 'allow', 'ask' or 'deny'"],
    ),
    "a rule without a verdict": (
        '{"rules": [{"pattern": "fs:*"}]}',
        ["rules.0.verdict: is missing"],
    ),
    "a pattern that can match nothing": (
        '{"rules": [{"pattern": "fs", "verdict": "deny"}]}',
        ["rules.0.pattern: matches no tool and no capability: write fs:read, fs:*, or"],
    ),
    "a field given twice": (
        '{"rules": [], "otherwise": "deny", "otherwise": "ask"}',
        ["otherwise: is given twice"],
    ),
    "no scope": (
        '{"scopes": {"acme": {}}}',
        ["scopes.acme: is not a scope: write <org>.<project>"],
    ),
    "a scope in a scope": (
        '{"scopes": {"acme.webapp": {"scopes": {}}}}',
        ["scopes.acme.webapp.scopes: is not a known field"],
    ),
    "several at once": (
        '{"otherwise": "no", "scopes": {"acme.webapp": {"read_only": 1}}}',
        ["otherwise: must be", "scopes.acme.webapp.read_only: must be"],
    ),
}


@pytest.mark.parametrize(("text", "faults"), FAULTS.values(), ids=FAULTS)
def test_every_fault_is_reported_with_its_place(text: str, faults: list[str]) -> None:
    with pytest.raises(PolicyInvalid) as refused:
        parse_policies(text)
    assert len(refused.value.faults) == len(faults)
    assert all(
        told.startswith(start) for told, start in zip(refused.value.faults, faults, strict=True)
    )
    assert str(refused.value) == "; ".join(refused.value.faults)
