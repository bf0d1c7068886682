"""Deletions of a principal's data: permission, and the workflows that have some."""

from dataclasses import replace

import pytest

from pml_gateway.domain.api.errors import Forbidden
from pml_gateway.domain.api.principals import kept_of, require_own_or_admin
from pml_gateway.domain.api.views import summary_of
from services.gateway.tests.support.builders import AT, workflow


def test_a_principal_and_an_admin_may_delete_its_data() -> None:
    require_own_or_admin("ada", "ada", is_admin=False)
    require_own_or_admin("mira", "ada", is_admin=True)
    with pytest.raises(Forbidden, match="mira may not delete the data of ada"):
        require_own_or_admin("mira", "ada", is_admin=False)


def test_a_workflow_has_data_until_it_is_deleted() -> None:
    kept = summary_of(workflow())
    assert kept_of(kept, "agent-7")
    assert not kept_of(kept, "mira")
    assert not kept_of(summary_of(replace(workflow(), deleted_at=AT)), "agent-7")
