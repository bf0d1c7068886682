"""Events of approvals on spans, and measurements of steps that change nothing."""

from collections.abc import Sequence
from dataclasses import replace

from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.trace import use_span

from libs.pml_common.tests.support.measured import measured
from pml_common.telemetry import metrics
from pml_gateway.application.workflow_measures import MeasuredStep, measure_step
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import Workflow, advance
from services.gateway.tests.support.builders import AT, RULES, analyzed, later, workflow

NEW = workflow()
WAITING, _ = advance(NEW, Analyzed(analyzed(NEW, "ask"), AT), RULES)
APPROVALS = f"{metrics.APPROVALS.prometheus_name}_count"
TIME = f"{metrics.APPROVALS.prometheus_name}_sum"


def told(before: Workflow | None, after: Workflow) -> Sequence[Event]:
    """Return the events that a step leaves on the current span."""
    span = TracerProvider(shutdown_on_exit=False).get_tracer("test").start_span("step")
    with use_span(span):
        measure_step(before, after)
    span.end()
    assert isinstance(span, ReadableSpan)
    return span.events


def decided(outcome: str) -> Workflow:
    assert WAITING.approval is not None
    answer = replace(WAITING.approval, outcome=outcome, decided_by="mira", decided_at=later(30))
    return replace(WAITING, approval=answer)


def test_a_request_for_approval_is_an_event() -> None:
    (event,) = told(NEW, WAITING)
    assert event.name == "approval.requested"
    assert event.attributes == {"pml.workflow.id": str(NEW.workflow_id)}


def test_a_decision_is_an_event_with_the_time_waited() -> None:
    with measured() as m:
        (event,) = told(WAITING, decided("approved"))
        assert event.name == "approval.decided"
        assert event.attributes == {
            "pml.workflow.id": str(NEW.workflow_id),
            "pml.decision": "approved",
            "pml.waited_s": 30.0,
        }
        assert m.value(APPROVALS, pml_decision="approved") == 1
        assert m.value(TIME) == 30


def test_a_step_that_changes_nothing_is_not_measured() -> None:
    with measured() as m:
        assert told(WAITING, WAITING) == ()
        assert told(decided("denied"), decided("denied")) == ()
        assert m.value(APPROVALS) == 0


def test_a_step_is_measured_as_it_was_taken_last_and_only_once_stored() -> None:
    step = MeasuredStep(lambda before: (replace(before, approval=decided("denied").approval), ()))
    with measured() as m:
        step.stored()
        step(WAITING)
        step(WAITING)
        assert m.value(APPROVALS) == 0
        step.stored()
        assert m.value(APPROVALS, pml_decision="denied") == 1
