"""Deletion of a principal's data, part by part, and the record of it."""

from typing import Final
from uuid import UUID

from pydantic import AwareDatetime

from pml_common.contracts.base import Contract
from pml_gateway.domain.api.errors import Forbidden
from pml_gateway.domain.api.views import WorkflowSummary

WORKFLOWS_OF_PART: Final = 200
"""Workflows of the scope that one request looks at."""


class DeletedPart(Contract):
    """One part of a deletion: the number of workflows whose data was deleted now, and those that
    have not ended and keep theirs. With `next_cursor` there are more; without, the deletion is
    recorded and told to other services."""

    principal: str
    deleted: int
    not_ended: tuple[UUID, ...] = ()
    next_cursor: str | None = None


class PrincipalDeletion(Contract):
    """The record of a deletion."""

    deletion_id: UUID
    principal: str
    deleted_by: str
    deleted_at: AwareDatetime


class PrincipalDeletions(Contract):
    """The last deletions of the scope, newest first."""

    deletions: tuple[PrincipalDeletion, ...]


def require_own_or_admin(asking: str, principal: str, *, is_admin: bool) -> None:
    """Raise Forbidden unless the data is the caller's own, or the caller an admin."""
    if asking != principal and not is_admin:
        raise Forbidden(
            f"{asking} may not delete the data of {principal}: that may the principal itself, and "
            "an admin of the scope"
        )


def kept_of(workflow: WorkflowSummary, principal: str) -> bool:
    """Whether a workflow is one of the principal's that still has data."""
    return workflow.principal == principal and workflow.deleted_at is None
