"""Calls that are made again while their workflow waits for a person, or before they got its result.

Such a call joins that workflow: otherwise an agent that calls again to see what became of a pending
approval would be asked for another one, and what it does would be done twice.
"""

import hashlib
import json
from datetime import datetime

from pml_common.contracts.gateway import ExecutionRequested
from pml_gateway.domain.workflow.workflow_state import Workflow


def call_digest(requested: ExecutionRequested) -> str:
    """Return the SHA-256 (hex) by which a call is the same again: who asks, and the program with
    its arguments and all that changes its effect. Intent and time limit do not."""
    what = {
        "principal": requested.principal,
        "code": requested.code,
        "submitted": requested.submitted,
        "args": requested.args,
        "name": requested.name,
        "update": requested.update,
        "version_tag": requested.version_tag,
        "layers": requested.layers,
        "dry_run": requested.dry_run and requested.dry_run.model_dump(mode="json"),
    }
    content = json.dumps(what, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def may_join(after_first_step: Workflow) -> bool:
    """Whether the call of a new workflow may be one that is made again: it may need a person."""
    new, analysis = after_first_step, after_first_step.analysis
    if new.call_digest is None or new.requested.dry_run is not None or new.state == "failed":
        return False
    if new.state != "running" or analysis is None:
        return True
    return bool(analysis.dynamic_calls or new.requested.layers)


def is_joinable(workflow: Workflow, at: datetime) -> bool:
    """Whether a workflow waits for a person, or was approved."""
    approval = workflow.approval
    if approval is None:
        return False
    if workflow.state == "awaiting_approval":
        return at < approval.expires_at
    return approval.outcome == "approved"
