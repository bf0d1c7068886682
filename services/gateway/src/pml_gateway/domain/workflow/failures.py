"""Why a workflow failed before it ran, in words its caller can act on."""

from uuid import UUID

from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.contracts.decision import Decision
from pml_common.contracts.error import WorkflowError
from pml_gateway.domain.workflow.workflow_state import Workflow

MOST_NAMED = 3
ANOTHER = "Send another program"
"""What an agent is told where a person wants another plan."""


def not_analyzed(rejection: AnalysisRejected) -> WorkflowError:
    """The program cannot run; the first diagnostic gives the place, all come along."""
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


def name_taken(name: str | None, holder: UUID) -> WorkflowError:
    """Another capability has the name that the program was to be learned by."""
    return WorkflowError(
        kind="rejected",
        message=f"the name {name} belongs to capability {holder}, which behaves differently; "
        f"choose another name, or run it with capability: {name}",
    )


def forbidden_by_policy(decision: Decision) -> WorkflowError:
    """The policy denies a tool; nothing of the program ran."""
    denied = [tool for tool in decision.tools if tool.verdict == "deny"]
    why = "; ".join(tool.reason for tool in denied[:MOST_NAMED]) or "; ".join(decision.reasons)
    return WorkflowError(
        kind="denied",
        message=f"the policy denies this program: {why}" if why else "the policy denies it",
        tool=denied[0].tool if denied else None,
    )


def said_no(by: str, reason: str | None, *, replan: bool, what: str = "it") -> str:
    """That a person said no, and why."""
    said = f"{by} wants another plan instead of {what}" if replan else f"{by} denied {what}"
    return said + (f": {reason}" if reason else "")


def denied(by: str, reason: str | None, *, replan: bool = False) -> WorkflowError:
    """A person said no; nothing of the program ran."""
    message = said_no(by, reason, replan=replan)
    return WorkflowError(kind="denied", message=f"{message}. {ANOTHER}" if replan else message)


def expired() -> WorkflowError:
    """Nobody decided in time; nothing of the program ran."""
    return WorkflowError(
        kind="denied", message="nobody approved it in time; run it again to ask anew"
    )


def abandoned(workflow: Workflow) -> WorkflowError:
    """It was asked for again and again, and its end never came."""
    if workflow.error is not None:
        return WorkflowError(
            kind=workflow.error.kind,
            message=f"{workflow.error.message}. No executor ended the run in time, so it is not "
            "known what was called; its journal tells what was",
        )
    if workflow.state == "running":
        return WorkflowError(
            kind="outcome_unknown",
            message="no executor finished the run in time, so it is not known what was called; "
            "its journal tells what was, PML_DEAD and the executor's log why",
        )
    return WorkflowError(
        kind="internal",
        message="the program was never analysed, and nothing of it ran; "
        "PML_DEAD and the analyzer's log tell why",
    )
