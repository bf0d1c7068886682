"""Grants: their content, and what their signature protects."""

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.binding.canonical import sha256_of_text
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import ArgumentRule, Policy, PolicyRule
from pml_common.contracts.executor import WantedCall
from pml_common.contracts.grant import Grant, JournalKind
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import TaskNode
from pml_common.contracts.tool import args_hash
from pml_common.signing import SigningKey, TrustedKeys
from pml_gateway.domain.workflow.grant import Covers, extend, issue
from pml_gateway.domain.workflow.verdicts import NO_VERDICTS, Verdicts
from services.gateway.tests.support.builders import (
    ELSEWHERE,
    KEY,
    READ,
    TOOLS,
    VERDICTS,
    WRITE,
    analyzed,
    later,
    with_capability,
    workflow,
)
from services.gateway.tests.support.calling import granted, running

OURS = workflow()
TRUSTED = TrustedKeys([KEY.public])


def issued(analysis: ExecutionAnalyzed, verdicts: Verdicts = VERDICTS) -> Grant:
    return issue(OURS.requested, analysis, verdicts, None, later(60), KEY)


def is_ours(grant: Grant) -> bool:
    return TRUSTED.verify("gateway", grant.kid, grant.signed_bytes(), grant.signature)


def test_a_denied_tool_is_in_no_grant() -> None:
    assert issued(analyzed(OURS, "deny", (WRITE,))).tools == {}


def test_a_grant_binds_the_capabilities_that_are_called_to_their_code() -> None:
    analysis = with_capability(analyzed(OURS))
    grant = issued(analysis)
    nested = analysis.capabilities[0]
    assert grant.capabilities == {str(nested.capability_id): nested.code_hash}
    assert grant.tools[READ.tool_id] == READ.definition_hash


def test_a_denied_capability_is_in_no_grant() -> None:
    assert issued(with_capability(analyzed(OURS), "deny")).capabilities == {}


def test_only_what_needs_approval_is_bound_with_the_arguments_that_were_shown() -> None:
    analysis = analyzed(OURS, "ask", (READ, WRITE))
    grant = issued(analysis)
    assert grant.bound == ("fs:write",)
    (node,), shown = grant.nodes.values(), analysis.structure.nodes[1]
    assert isinstance(shown, TaskNode)
    assert grant.nodes.keys() == {"n2"}
    assert (node.tool, node.arguments) == ("fs:write", shown.arguments)
    assert issued(analyzed(OURS)).nodes == {}


def test_a_grant_binds_text_arguments_and_policy() -> None:
    analysis = analyzed(OURS)
    grant = issued(analysis)
    assert grant.text_hash == sha256_of_text(analysis.instrumented)
    assert grant.args_hash == args_hash(OURS.requested.args)
    assert grant.policy_revision == Policy().revision
    assert issued(analysis, NO_VERDICTS).policy_revision == ""


def test_standing_rules_on_bound_tools_are_in_it_while_the_policy_is_the_same() -> None:
    rule = PolicyRule(
        pattern="fs:wr*", arguments=(ArgumentRule(name="path", under="/w"),), verdict="allow"
    )
    other = PolicyRule(pattern="git:*", verdict="deny")
    policy = Policy(rules=(other, rule), computed="park")
    analysis = analyzed(OURS, "ask", (READ, WRITE))
    grant = issued(analysis, Verdicts((policy,), TOOLS))
    assert (grant.standing, grant.computed_parks) == ((rule,), True)
    assert issued(analysis, Verdicts((Policy(), policy), TOOLS)).standing == ()


@pytest.mark.parametrize(
    "change",
    [
        {"scope": ELSEWHERE},
        {"tools": {"fs:write": WRITE.definition_hash, "fs:delete": "0" * 64}},
        {"expires_at": later(10**6)},
        {"capabilities": {"x": "0" * 64}},
        {"approved_by": "mallory"},
        {"bound": ()},
        {"nodes": {}},
        {"text_hash": "0" * 64},
        {"kid": "another"},
        {"signature": ""},
        {"signature": "é"},
    ],
)
def test_a_changed_grant_is_not_ours_and_has_another_digest(change: dict[str, object]) -> None:
    grant = granted(running(OURS))
    assert is_ours(grant)
    forged = grant.model_copy(update=change)
    assert not is_ours(forged)
    assert forged.digest() != grant.digest()


def test_a_grant_of_another_key_is_not_ours() -> None:
    other = SigningKey.generate("gateway")
    grant = issue(OURS.requested, analyzed(OURS), VERDICTS, None, later(60), other)
    assert not is_ours(grant)


def wanted(node_id: str, occurrence: int, path: str, layer: int | None = None) -> WantedCall:
    return WantedCall(
        node_id=node_id,
        occurrence=occurrence,
        tool=WRITE.tool_id,
        definition_hash=WRITE.definition_hash,
        args_hash=args_hash({"path": path}),
        args={"path": path},
        layer=layer,
    )


CALLS = (wanted("n2", 0, "/a"), wanted("n2", 1, "/b"), wanted("dyn:fs:write", 0, "/c"))


@pytest.mark.parametrize(
    ("covers", "calls", "rest"),
    [
        ("call", [("n2", 0)], []),
        ("calls", [("n2", 0), ("n2", 1), ("dyn:fs:write", 0)], []),
        ("node", [], ["n2", "dyn:fs:write"]),
    ],
)
def test_what_a_person_adds_is_as_much_as_they_said(
    covers: Covers, calls: list[tuple[str, int]], rest: list[str]
) -> None:
    grant = extend(granted(running(OURS)), CALLS, covers, "ann", later(90), KEY)
    assert [(one.node_id, one.occurrence) for one in grant.calls] == calls
    assert [one.node_id for one in grant.rest] == rest
    assert (grant.approved_by, grant.expires_at) == ("ann", later(90))
    assert is_ours(grant)


def test_a_layer_adds_nothing() -> None:
    layer = wanted("n2", 0, "/a", layer=2)
    grant = extend(granted(running(OURS)), (layer,), "calls", "ann", later(90), KEY)
    assert (grant.calls, grant.rest) == ((), ())


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("unsigned", "unsigned_until_park"),
        ("unsigned_until_park", "unsigned_until_park"),
        ("signed", "signed"),
    ],
)
def test_an_approval_ends_what_unsigned_appends_count(before: JournalKind, now: str) -> None:
    grant = granted(running(OURS))
    assert grant.journal == "signed"
    older = grant.model_copy(update={"journal": before})
    assert is_ours(older)
    assert older.digest() == grant.digest()
    assert extend(older, CALLS, "call", "ann", later(90), KEY).journal == now


TOKENS = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,9}", fullmatch=True)
GRANTS = st.builds(
    Grant,
    scope=st.builds(Scope, org=TOKENS, project=TOKENS),
    workflow_id=st.uuids(),
    code_hash=st.text(max_size=8),
    text_hash=st.text(max_size=8),
    args_hash=st.text(max_size=8),
    tools=st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3),
    bound=st.tuples(st.text(max_size=8)),
    nodes=st.just({}),
    calls=st.just(()),
    rest=st.just(()),
    standing=st.just(()),
    policy_revision=st.text(max_size=8),
    approved_by=st.none() | st.text(max_size=8),
    expires_at=st.datetimes(timezones=st.just(UTC)),
)


@given(GRANTS, GRANTS)
def test_two_grants_that_differ_in_anything_have_different_bytes(one: Grant, two: Grant) -> None:
    assert (one.signed_bytes() == two.signed_bytes()) == (
        one.model_copy(update={"signature": two.signature}) == two
    )
