"""The deletion of a principal's data, on request of the principal or of an admin."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.gateway import PrincipalDataDeleted
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.list_cursors import decode_after
from pml_gateway.domain.api.principals import (
    WORKFLOWS_OF_PART,
    DeletedPart,
    PrincipalDeletion,
    PrincipalDeletions,
    kept_of,
    require_own_or_admin,
)
from pml_gateway.domain.workflow.deletion import deleted
from pml_gateway.ports import Caller, PrincipalDeletionRecord

log = logging.getLogger(__name__)

_LISTED = 200


@dataclass(frozen=True)
class PrincipalData:
    """Deletes the data of principals in parts; a repetition finds less, or nothing."""

    workflows: WorkflowService
    record: PrincipalDeletionRecord
    publish: Callable[[Message], Awaitable[object]]
    now: Callable[[], datetime]

    async def delete(self, caller: Caller, principal: str, cursor: str | None) -> DeletedPart:
        """Delete the data of the principal's ended workflows among the next ones of the scope; with
        the last part, record the deletion and publish it. Raises Forbidden, InvalidRequest for a
        foreign cursor, and errors of storage and bus."""
        require_own_or_admin(caller.principal, principal, is_admin=caller.is_admin)
        at, scope = self.now(), caller.scope
        page = await self.workflows.store.page(scope, WORKFLOWS_OF_PART, 0, decode_after(cursor))
        found = [each for each in page.workflows if kept_of(each, principal)]
        ended = [each.workflow_id for each in found if each.finished_at is not None]
        for workflow_id in ended:
            await self.workflows.known(scope, workflow_id)  # it may have ended a moment ago
            await self.workflows.step(scope, workflow_id, lambda each: deleted(each, at))
        if page.next_cursor is None:
            await self._conclude(caller, principal, at)
        return DeletedPart(
            principal=principal,
            deleted=len(ended),
            not_ended=tuple(each.workflow_id for each in found if each.finished_at is None),
            next_cursor=page.next_cursor,
        )

    async def list(self, caller: Caller) -> PrincipalDeletions:
        """Return the last deletions of the scope. Raises StorageUnavailable."""
        found = await self.record.newest(caller.scope, _LISTED)
        return PrincipalDeletions(deletions=tuple(found))

    async def _conclude(self, caller: Caller, principal: str, at: datetime) -> None:
        scope = caller.scope
        deletion_id = ids.scoped_id(scope, "principal-deletion", f"{principal}/{at.isoformat()}")
        done = PrincipalDeletion(
            deletion_id=deletion_id, principal=principal, deleted_by=caller.principal, deleted_at=at
        )
        await self.record.add(scope, done)
        await self.publish(
            PrincipalDataDeleted(
                scope=scope,
                event_id=ids.effect_id(deletion_id, "principal-data-deleted"),
                **done.model_dump(),
            )
        )
        log.info("%s: %s deleted the data of %s", scope, caller.principal, principal)
