"""Check of the approver's key."""

import hashlib

import pytest
from pydantic import ValidationError

from pml_gateway.domain.api.approver import Approver
from pml_gateway.domain.api.errors import Unauthorized
from services.gateway.tests.support.harness import settings

NOOR = Approver("noor", hashlib.sha256(b"the key").hexdigest())


@pytest.mark.parametrize("shown", ["Bearer the key", "bearer the key", "Bearer  the key "])
def test_the_key_lets_its_holder_decide(shown: str) -> None:
    NOOR.check(shown)
    assert NOOR.principal == "approver:noor"


@pytest.mark.parametrize(
    "shown",
    [None, "", "Bearer", "Bearer ", "Basic the key", "the key", "Bearer the ke", "Bearer x"],
)
def test_without_the_key_the_error_tells_who_may_decide_and_how(shown: str | None) -> None:
    with pytest.raises(Unauthorized, match="pml approvals approve WORKFLOW"):
        NOOR.check(shown)


def test_without_a_hash_nobody_may_decide() -> None:
    with pytest.raises(Unauthorized, match="PML_GATEWAY_APPROVER_KEY_SHA256"):
        Approver("noor", None).check("Bearer None")


@pytest.mark.parametrize(
    ("name", "value"),
    [("gateway_approver_key_sha256", "the key"), ("gateway_principal", "approver:noor")],
)
def test_settings_take_no_key_for_its_hash_and_no_agent_for_an_approver(
    name: str, value: str
) -> None:
    with pytest.raises(ValidationError, match=name):
        settings(**{name: value})
