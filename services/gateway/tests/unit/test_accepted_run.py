"""The acceptance of a workflow as a message."""

from dataclasses import replace

import pytest

from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.contracts.decision import Verdict
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.accepted_run import acceptance_of, accepted_workflow
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import advance
from services.gateway.tests.support.builders import AT, RULES, analyzed, workflow
from services.gateway.tests.support.stored import NASTY


def test_a_workflow_that_runs_is_the_same_after_its_message() -> None:
    new = workflow(
        ExecuteRequest(code=NASTY), traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    )
    analysis = analyzed(new).model_copy(
        update={"instrumented": f"{NASTY};", "insertions": ((1, 2),)}
    )
    after, effects = advance(new, Analyzed(analysis, AT), RULES)
    message = acceptance_of(after, effects)
    assert message is not None
    assert message.run == effects[0]
    assert message.analysis.instrumented == ""
    read = WorkflowAccepted.model_validate_json(message.model_dump_json())
    assert accepted_workflow(read) == after


@pytest.mark.parametrize("verdict", ["ask", "deny"])
def test_a_workflow_whose_first_step_begins_no_run_is_accepted_by_the_store(
    verdict: Verdict,
) -> None:
    new = workflow()
    after, effects = advance(new, Analyzed(analyzed(new, verdict), AT), RULES)
    assert acceptance_of(after, effects) is None
    assert acceptance_of(new, (new.requested,)) is None
    assert acceptance_of(new, ()) is None


def test_a_run_without_an_analysis_is_accepted_by_the_store() -> None:
    new = workflow()
    after, effects = advance(new, Analyzed(analyzed(new), AT), RULES)
    assert acceptance_of(replace(after, analysis=None), effects) is None
    assert acceptance_of(replace(after, due_at=None), effects) is None
