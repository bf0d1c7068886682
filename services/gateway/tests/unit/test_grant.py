"""Grants: what their signature protects and what they refuse."""

from datetime import UTC, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.grant import Grant
from pml_common.contracts.scope import Scope
from pml_gateway.domain.grant import Signatures, issue, outdated, refusal
from services.gateway.tests.examples import (
    AT,
    ELSEWHERE,
    READ,
    SECRET,
    WRITE,
    analyzed,
    call,
    later,
    with_capability,
    workflow,
)

OURS = workflow()


def test_a_call_under_its_grant_is_not_refused() -> None:
    assert refusal(call(OURS), Signatures(SECRET), AT) is None


def test_a_denied_tool_is_in_no_grant() -> None:
    assert issue(analyzed(OURS, "deny", (WRITE,)), None, later(60), SECRET).tools == {}


def test_a_grant_binds_the_capabilities_that_are_called_to_their_code() -> None:
    analysis = with_capability(analyzed(OURS))
    grant = issue(analysis, None, later(60), SECRET)
    nested = analysis.capabilities[0]
    assert grant.capabilities == {str(nested.capability_id): nested.code_hash}
    assert grant.tools[READ.tool_id] == READ.definition_hash


def test_a_denied_capability_is_in_no_grant() -> None:
    denied = with_capability(analyzed(OURS), "deny")
    assert issue(denied, None, later(60), SECRET).capabilities == {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scope": ELSEWHERE}, "signature"),
        ({"tools": {"fs:write": WRITE.definition_hash, "fs:delete": "0" * 64}}, "signature"),
        ({"expires_at": later(10**6)}, "signature"),
        ({"capabilities": {"x": "0" * 64}}, "signature"),
        ({"approved_by": "mallory"}, "signature"),
        ({"signature": ""}, "signature"),
        ({"signature": "é"}, "signature"),
    ],
)
def test_a_changed_grant_is_refused(change: dict[str, object], reason: str) -> None:
    asked = call(OURS)
    forged = asked.model_copy(update={"grant": asked.grant.model_copy(update=change)})
    assert reason in str(refusal(forged, Signatures(SECRET), AT))


def test_a_grant_of_another_key_is_refused() -> None:
    assert "signature" in str(refusal(call(OURS), Signatures(b"another key"), AT))


def test_a_signature_is_known_with_its_very_grant_and_for_a_time() -> None:
    signatures, first = Signatures(SECRET), call(OURS).grant
    for number in range(300):
        ours = issue(analyzed(OURS), f"person {number}", later(60), SECRET)
        assert signatures.is_ours(ours)
        assert signatures.is_ours(ours.model_copy())
        assert not signatures.is_ours(ours.model_copy(update={"tools": {"fs:write": "0" * 64}}))
    assert signatures.is_ours(first)


def test_a_grant_ends() -> None:
    asked = call(OURS, expires_at=later(60))
    assert refusal(asked, Signatures(SECRET), later(59)) is None
    assert "expired at" in str(refusal(asked, Signatures(SECRET), later(60)))


def test_a_grant_serves_its_own_workflow_only() -> None:
    other = call(OURS).model_copy(update={"workflow_id": workflow().workflow_id})
    assert "another workflow" in str(refusal(other, Signatures(SECRET), AT))
    elsewhere = call(OURS).model_copy(update={"scope": ELSEWHERE})
    assert "another workflow" in str(refusal(elsewhere, Signatures(SECRET), AT))


def test_a_tool_outside_the_grant_is_refused() -> None:
    unseen = call(OURS).model_copy(update={"tool": "fs:delete"})
    assert "nobody has allowed it" in str(refusal(unseen, Signatures(SECRET), AT))


def test_a_tool_that_is_gone_or_has_changed_is_not_what_was_granted() -> None:
    assert outdated(call(OURS), READ.definition_hash) is None
    assert "not there any more" in str(outdated(call(OURS), None))
    assert "has changed" in str(outdated(call(OURS), WRITE.definition_hash))


TOKENS = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,9}", fullmatch=True)
GRANTS = st.builds(
    Grant,
    scope=st.builds(Scope, org=TOKENS, project=TOKENS),
    workflow_id=st.uuids(),
    code_hash=st.text(max_size=8),
    tools=st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3),
    approved_by=st.none() | st.text(max_size=8),
    expires_at=st.datetimes(timezones=st.just(UTC)),
)


@given(GRANTS, GRANTS)
def test_two_grants_that_differ_in_anything_have_different_bytes(one: Grant, two: Grant) -> None:
    assert (one.signed_bytes() == two.signed_bytes()) == (one == two)


@given(GRANTS, st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10_000)))
def test_no_grant_we_did_not_sign_lets_anything_through(grant: Grant, since: timedelta) -> None:
    asked = call(OURS).model_copy(update={"grant": grant})
    assert refusal(asked, Signatures(SECRET), AT + since) is not None
