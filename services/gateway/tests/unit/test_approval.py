"""Decisions on approvals, and the errors of those that have no effect."""

from dataclasses import replace
from uuid import uuid4

import pytest

from pml_common.contracts.executor import RunWorkflow
from pml_gateway.domain.api import shown_calls
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.api.shown import shown_calls_of
from pml_gateway.domain.api.shown_calls import ShownToApprover
from pml_gateway.domain.workflow.approval import Decide, agreed_on, answerable, with_shown
from pml_gateway.domain.workflow.events import Analyzed, Decided
from pml_gateway.domain.workflow.workflow import Approval, Workflow, advance
from services.gateway.tests.support.builders import AT, RULES, analyzed, later, workflow
from services.gateway.tests.support.parked_runs import by_name, parked, parked_event
from services.gateway.tests.support.steps import after

NEW = workflow()
WAITING, _ = advance(NEW, Analyzed(analyzed(NEW, "ask"), AT), RULES)
APPROVAL = WAITING.approval or Approval(uuid4(), AT, AT)


def told(of: Workflow) -> str:
    with pytest.raises(Conflict) as refused:
        answerable(of, None, later(5))
    return str(refused.value)


def settled(outcome: str, by: str | None = "mira") -> Workflow:
    answer = replace(APPROVAL, outcome=outcome, decided_by=by, decided_at=AT if by else None)
    return replace(WAITING, approval=answer)


def test_a_decision_in_time_counts_whether_or_not_it_names_its_approval() -> None:
    assert answerable(WAITING, None, later(5)) == APPROVAL
    assert answerable(WAITING, APPROVAL.approval_id, later(3599)) == APPROVAL


def test_there_must_be_something_to_decide() -> None:
    assert "waits for no approval: it is requested" in told(NEW)


def test_a_decision_counts_once() -> None:
    assert "mira approved workflow" in told(settled("approved"))
    assert "mira denied workflow" in told(settled("denied"))
    assert "at 2026-11-21T09:30:00+00:00 already" in told(settled("denied"))
    assert "ended at 2026-11-21" in told(settled("expired"))
    assert told(settled("approved", None)).endswith(f"{NEW.workflow_id} already")


def test_a_decision_on_a_parked_run_must_name_its_approval() -> None:
    of = workflow()
    now, effects = after(of, Analyzed(by_name(of, "allow"), AT))
    command = effects[-1]
    assert isinstance(command, RunWorkflow)
    now, _ = after(now, parked_event(parked(command), later(5)))
    assert now.approval is not None
    assert answerable(now, now.approval.approval_id, later(6)) == now.approval
    with pytest.raises(Conflict, match="review it and name its approval_id"):
        answerable(now, None, later(6))
    went_on, _ = after(now, Decided(now.approval.approval_id, "approved", "mira", later(7)))
    with pytest.raises(Conflict, match="already"):
        answerable(went_on, None, later(12))


def test_a_decision_counts_in_time_and_for_its_own_approval() -> None:
    with pytest.raises(Conflict, match=r"ended at 2026-11-21T10:30:00"):
        answerable(WAITING, None, later(3600))
    with pytest.raises(Conflict, match="not for"):
        answerable(WAITING, uuid4(), later(5))


def test_a_decision_is_about_what_stands_now_where_it_says_what_it_saw() -> None:
    digest = shown_calls_of(WAITING, APPROVAL).digest()
    agreed_on(WAITING, APPROVAL, Decide(decision="approve"))
    seen = ShownToApprover(digest=digest, whole=True)
    agreed_on(WAITING, APPROVAL, Decide(decision="approve", shown=seen))
    assert with_shown(WAITING, seen).approval == replace(APPROVAL, shown=seen)
    stale = ShownToApprover(digest="0" * 64, whole=True)
    for decision in ("approve", "deny"):
        with pytest.raises(Conflict, match="review it again"):
            agreed_on(WAITING, APPROVAL, Decide(decision=decision, shown=stale))
    assert with_shown(WAITING, None) is WAITING
    assert with_shown(NEW, seen) is NEW


def test_what_cannot_be_shown_cannot_be_agreed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_calls, "MAX_CALLS", 0)
    with pytest.raises(Conflict, match="more calls than can be shown"):
        agreed_on(WAITING, APPROVAL, Decide(decision="approve"))
    agreed_on(WAITING, APPROVAL, Decide(decision="deny"))
