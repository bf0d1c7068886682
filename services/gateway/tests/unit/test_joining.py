"""Calls that may join the workflow of an earlier one, and the workflows that they join."""

from dataclasses import replace

import pytest

from pml_common.contracts.decision import Verdict
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.events import Analyzed, Decided, NotAnalyzed
from pml_gateway.domain.workflow.joining import call_digest, is_joinable, may_join
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import (
    AT,
    VERDICTS,
    analyzed,
    finished,
    later,
    rejected,
    workflow,
)
from services.gateway.tests.support.parked_runs import by_name
from services.gateway.tests.support.steps import after

NEW = workflow()
CALL: dict[str, object] = {"code": "ask", "args": {"path": "/a"}}


def stepped(verdict: Verdict) -> Workflow:
    return after(NEW, Analyzed(analyzed(NEW, verdict), AT, verdicts=VERDICTS))[0]


def decided(outcome: str) -> Workflow:
    waits = stepped("ask")
    assert waits.approval is not None
    event = Decided(waits.approval.approval_id, "approved", "noor", AT, verdicts=VERDICTS)
    return after(waits, replace(event, outcome=outcome))[0]


def digest(**more: object) -> str | None:
    return workflow(ExecuteRequest.model_validate({**CALL, **more})).call_digest


def test_a_call_is_the_same_whatever_its_intent_and_its_time() -> None:
    assert digest() == digest(intent="look", timeout=9, fresh=True) is not None
    assert digest(idempotency_key="k") is None


@pytest.mark.parametrize(
    "other",
    [
        {"code": "ask()"},
        {"args": {"path": "/b"}},
        {"name": "fs:look"},
        {"name": "fs:look", "update": True},
        {"dry_run": True},
    ],
)
def test_another_program_with_other_arguments_or_effects_is_another_call(
    other: dict[str, object],
) -> None:
    assert digest(**other) != digest()


def test_the_credential_is_part_of_the_call() -> None:
    theirs = NEW.requested.model_copy(update={"principal": "zoe"})
    assert call_digest(theirs) != NEW.call_digest


def test_only_what_may_need_a_person_is_looked_for() -> None:
    assert may_join(NEW)
    assert may_join(stepped("ask"))
    assert not may_join(stepped("allow"))
    assert not may_join(stepped("deny"))
    assert not may_join(after(NEW, NotAnalyzed(rejected(NEW), AT))[0])
    assert not may_join(replace(stepped("ask"), call_digest=None))
    assert not may_join(workflow(ExecuteRequest.model_validate({**CALL, "dry_run": True})))


def test_what_may_park_is_looked_for() -> None:
    may_park = after(NEW, Analyzed(by_name(NEW, "allow"), AT, verdicts=VERDICTS))[0]
    assert may_park.state == "running"
    assert may_join(may_park)
    layered = NEW.requested.model_copy(update={"layers": (("a",), ("b",))})
    assert may_join(replace(stepped("allow"), requested=layered))


def test_a_workflow_is_joined_while_it_waits_and_after_it_was_approved() -> None:
    assert is_joinable(stepped("ask"), AT)
    assert not is_joinable(stepped("ask"), later(3600))
    assert not is_joinable(stepped("allow"), AT)
    running = decided("approved")
    assert running.state == "running"
    assert is_joinable(running, later(7200))
    assert is_joinable(after(running, finished(NEW))[0], later(7200))
    assert not is_joinable(decided("denied"), AT)
