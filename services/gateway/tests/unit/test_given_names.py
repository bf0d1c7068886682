"""Names in answers about runs."""

from dataclasses import replace

import pytest

from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.given_names import given_later, told_name, wanted_name
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import finished, workflow


def ended(name: str | None = "fs:look", *, dry_run: bool = False) -> Workflow:
    """Build a workflow that has succeeded."""
    request = ExecuteRequest(code="return 1;", name=name, dry_run=dry_run)
    return replace(workflow(request), state="succeeded")


@pytest.mark.parametrize("known", ["fs:look", "unnamed_1f3e", None])
def test_who_wants_no_name_is_told_the_one_there_is(known: str | None) -> None:
    for of in (ended(None), ended(dry_run=True), replace(ended(), state="failed")):
        assert wanted_name(of) is None
        assert told_name(of, known) == (known, ())


def test_who_wants_a_name_is_told_no_provisional_one() -> None:
    assert told_name(ended(), "fs:look") == ("fs:look", ())
    assert told_name(ended(), "fs:known_as_this") == ("fs:known_as_this", ())
    name, (notice,) = told_name(ended(), "unnamed_1f3e")
    assert (name, notice[:22]) == (None, "fs:look was not given ")
    assert told_name(ended(), None) == given_later("fs:look")
    name, (notice,) = given_later("fs:look")
    assert (name, notice[:24]) == (None, "fs:look is given later: ")


def test_a_run_without_a_result_gives_no_name() -> None:
    of = ended()
    of = replace(of, run=finished(of).model_copy(update={"void": True}))
    for known in ("unnamed_1f3e", None):
        assert told_name(of, known) == (
            None,
            ("fs:look was not given to this program, whose run had no result.",),
        )
    assert told_name(of, "fs:look") == ("fs:look", ())
