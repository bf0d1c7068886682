"""Errors of workflows that failed before they ran or were abandoned; each says what to do."""

from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.contracts.decision import Decision
from pml_common.contracts.error import WorkflowError
from pml_gateway.domain.workflow.workflow_state import Workflow

MOST_NAMED = 3
ANOTHER = "Send another program"
"""Instruction to the agent after a `replan` decision."""


def not_analyzed(rejection: AnalysisRejected) -> WorkflowError:
    """The program cannot run; line and column are those of the first error, all diagnostics are
    included."""
    found = rejection.diagnostics
    first = next((one for one in found if one.severity == "error"), found[0] if found else None)
    if first is None:
        return WorkflowError(kind=rejection.kind, message="the program cannot run")
    more = len(found) - 1
    return WorkflowError(
        kind=rejection.kind,
        message=first.message + (f" (and {more} more)" if more else ""),
        line=first.line,
        column=first.column,
        diagnostics=found,
    )


def name_refused(why: str) -> WorkflowError:
    """The program cannot have the name that it was sent under."""
    return WorkflowError(kind="rejected", message=why)


def forbidden_by_policy(decision: Decision) -> WorkflowError:
    """The policy denies a tool; nothing of the program ran."""
    denied = [tool for tool in decision.tools if tool.verdict == "deny"]
    why = "; ".join(tool.reason for tool in denied[:MOST_NAMED]) or "; ".join(decision.reasons)
    return WorkflowError(
        kind="denied",
        message=f"the policy denies this program: {why}" if why else "the policy denies it",
        tool=denied[0].tool if denied else None,
    )


def denial(by: str, reason: str | None, *, replan: bool, what: str = "it") -> str:
    """Return the sentence for a denial, with its reason."""
    said = f"{by} wants another plan instead of {what}" if replan else f"{by} denied {what}"
    return said + (f": {reason}" if reason else "")


def denied(by: str, reason: str | None, *, replan: bool = False) -> WorkflowError:
    """A person denied it; nothing of the program ran."""
    message = denial(by, reason, replan=replan)
    return WorkflowError(kind="denied", message=f"{message}. {ANOTHER}" if replan else message)


def expired() -> WorkflowError:
    """The approval expired; nothing of the program ran."""
    return WorkflowError(
        kind="denied", message="it was not approved in time; run it again to request approval anew"
    )


def abandoned(workflow: Workflow) -> WorkflowError:
    """The workflow did not end although it was requested repeatedly."""
    if workflow.error is not None:
        return WorkflowError(
            kind=workflow.error.kind,
            message=f"{workflow.error.message}. No executor ended the run in time, so it is not "
            "known what was called; its journal has the calls",
        )
    if workflow.state == "running":
        return WorkflowError(
            kind="outcome_unknown",
            message="no executor finished the run in time, so it is not known what was called; "
            "its journal has the calls, PML_DEAD and the executor's log have the cause",
        )
    return WorkflowError(
        kind="internal",
        message="the program was never analysed, and nothing of it ran; "
        "PML_DEAD and the analyzer's log have the cause",
    )
