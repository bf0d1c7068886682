"""Effect of a dead-lettered message on its workflow."""

from pml_common.contracts import catalog, ids
from pml_common.contracts.error import WorkflowError
from pml_gateway.domain.workflow.accepted_run import accepted_id
from pml_gateway.domain.workflow.events import GivenUp
from pml_gateway.domain.workflow.workflow_state import Workflow

CONSUMERS = frozenset(
    consumer.durable
    for consumer in (
        catalog.ANALYZER_ON_EXECUTION_REQUESTED,
        catalog.GATEWAY_ON_EXECUTION_ANALYZED,
        catalog.GATEWAY_ON_ANALYSIS_REJECTED,
        catalog.EXECUTOR_ON_WORKFLOW_ACCEPTED,
        catalog.EXECUTOR_ON_RUN_WORKFLOW,
        catalog.EXECUTOR_ON_CANCEL_RUN,
        catalog.GATEWAY_ON_WORKFLOW_PARKED,
        catalog.GATEWAY_ON_RUN_FINISHED,
    )
)
"""Consumers without which a workflow makes no progress. The others (the learner, say) end
nothing."""
_REASON_LIMIT = 500


def ends(workflow: Workflow, given: GivenUp) -> bool:
    """Whether the workflow waits for exactly this message at exactly this consumer. Commands and
    parks from before an approval are no longer waited for."""
    return (given.consumer, given.message_id) in _awaited(workflow)


def _awaited(workflow: Workflow) -> set[tuple[str, str]]:
    if workflow.state == "requested":
        cause = workflow.requested.event_id
        return {
            (catalog.ANALYZER_ON_EXECUTION_REQUESTED.durable, str(cause)),
            *(
                (consumer.durable, str(ids.effect_id(cause, consumer.message.name)))
                for consumer in (
                    catalog.GATEWAY_ON_EXECUTION_ANALYZED,
                    catalog.GATEWAY_ON_ANALYSIS_REJECTED,
                )
            ),
        }
    command, run = workflow.run_command_id, workflow.workflow_id
    parked, finished = catalog.GATEWAY_ON_WORKFLOW_PARKED, catalog.GATEWAY_ON_RUN_FINISHED
    awaited = {
        (catalog.EXECUTOR_ON_RUN_WORKFLOW.durable, str(command)),
        (parked.durable, str(ids.effect_id(command, parked.message.name))),
        (finished.durable, str(ids.effect_id(run, finished.message.name))),
    }
    if workflow.approval is None:
        accepted = catalog.EXECUTOR_ON_WORKFLOW_ACCEPTED
        awaited.add((accepted.durable, str(accepted_id(workflow.workflow_id))))
    if workflow.error is not None:
        cancel = catalog.EXECUTOR_ON_CANCEL_RUN
        awaited.add((cancel.durable, str(ids.effect_id(run, cancel.message.name))))
    return awaited


def given_up(workflow: Workflow, given: GivenUp) -> WorkflowError:
    """Return the error that ends the workflow: the cause, what it has called, and what is unknown.
    One that was being cancelled ends as cancelled."""
    message = _message(workflow, given)
    if workflow.error is None:
        return WorkflowError(kind="internal", message=message)
    earlier = workflow.error
    return WorkflowError(kind=earlier.kind, message=f"{earlier.message}. But {message}")


def _message(workflow: Workflow, given: GivenUp) -> str:
    gave_up, journal = f"{given.consumer} gave it up: {_short(given.reason)}", given.journal
    if workflow.state == "requested":
        return f"the program could not be analysed, and nothing of it ran; {gave_up}"
    if journal is None:  # the run began after the journal was read
        return f"the run could not be finished; {gave_up}"
    if journal.fault is not None:
        return (
            f"the run's journal cannot be read as a whole ({_short(journal.fault)}): it was "
            f"damaged or tampered with. As far as it can be read: {journal.calls} What else was "
            "called is unknown."
        )
    if journal.succeeded is not None:
        how = "succeeded" if journal.succeeded else "failed"
        return f"the run {how} by its journal, and its end could not be stored; {gave_up}. " + (
            journal.calls
        )
    return f"the run could not be finished; {gave_up}. {journal.calls}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _REASON_LIMIT else f"{line[:_REASON_LIMIT]}…"
