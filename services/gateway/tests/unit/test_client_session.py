"""Names of client sessions."""

from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.client_session import caller_key, session_key

SCOPE = Scope(org="acme", project="web")


def test_a_session_has_another_name_for_each_caller() -> None:
    names = {
        session_key(scope, principal, session_id)
        for scope in (SCOPE, Scope(org="acme", project="webs"))
        for principal, session_id in (("ada", "1"), ("ad", "a1"), ("ada", "2"), ("ada1", ""))
    }
    assert len(names) == 8
    assert session_key(SCOPE, "ada", "1") in names


def test_names_are_tokens_whatever_the_client_sends() -> None:
    assert session_key(SCOPE, "ada", "\udcff. *>").isalnum()
    assert caller_key(SCOPE, "ada") != caller_key(SCOPE, "eve")
