"""Checks of other services' messages against the request."""

from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.gateway import ExecutionRequested


def is_analysis_of(requested: ExecutionRequested, analysis: ExecutionAnalyzed) -> bool:
    """Whether an analysis is of exactly the requested program, for the same principal. Only a
    submitted program may have been changed."""
    changed = analysis.submitted_code if requested.submitted else None
    asked = requested.code, requested.principal, requested.name, requested.dry_run is not None
    code = analysis.code if changed is None else changed
    read = code, analysis.principal, analysis.capability.name, analysis.dry_run
    ours = (analysis.scope, analysis.workflow_id) == (requested.scope, requested.workflow_id)
    return ours and read == asked


def answers_stored_request(analysis: ExecutionAnalyzed) -> bool:
    """Whether an analysis was published for the workflow's stored request, not for a query."""
    request = ids.effect_id(analysis.workflow_id, "execution-requested")
    return analysis.event_id == ids.effect_id(request, "execution-analyzed")
