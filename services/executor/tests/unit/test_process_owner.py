"""Which runs may share a process."""

from collections.abc import Callable

import pytest

from pml_common.contracts.executor import RunWorkflow
from pml_executor.domain.process_owner import process_owner


@pytest.mark.parametrize("approved_by", [None, "ana"])
def test_what_a_person_agreed_to_shares_no_process(
    make_command: Callable[..., RunWorkflow], approved_by: str | None
) -> None:
    command = make_command("return 1;")
    grant = command.grant.model_copy(update={"approved_by": approved_by})
    owner = process_owner(command.model_copy(update={"grant": grant}))
    assert owner == (None if approved_by else command.scope)
