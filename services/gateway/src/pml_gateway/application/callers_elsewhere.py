"""Callers of other gateways that wait for the same workflows as callers here.

Gateways ask each other only about workflows that a second caller has joined: most have one caller,
whose cancellation takes effect at once.
"""

import asyncio
import logging
from typing import Final
from uuid import UUID

from pml_common.bus.errors import BusError
from pml_common.contracts.gateway import WorkflowAwaited
from pml_common.contracts.scope import Scope
from pml_gateway.ports import Notifier, Replicas

log = logging.getLogger(__name__)

_ANSWER_WITHIN_S: Final = 0.3
_MOST_SHARED: Final = 10_000

_Key = tuple[Scope, UUID]


class CallersElsewhere:
    """Hears of them, and tells of those here. Signals may be lost: then a workflow is cancelled
    while another gateway's caller waits for it, who is told so."""

    def __init__(self, replicas: Replicas, notifier: Notifier, instance: UUID) -> None:
        self._replicas = replicas
        self._notifier = notifier
        self._instance = instance
        self._shared: set[_Key] = set()
        self._asked: dict[_Key, asyncio.Event] = {}

    async def join(self, scope: Scope, workflow_id: UUID) -> None:
        """Tell that a caller here waits for a workflow that another call began."""
        self._share((scope, workflow_id))
        try:
            await self._replicas.tell_awaited(scope, workflow_id, "joined")
        except BusError as error:
            log.info("no gateway hears that %s has another caller: %s", workflow_id, error)

    def is_shared(self, scope: Scope, workflow_id: UUID) -> bool:
        """Whether a second caller is known to have joined a workflow."""
        return (scope, workflow_id) in self._shared

    async def await_workflow(self, scope: Scope, workflow_id: UUID) -> bool:
        """Return whether a caller of another gateway waits for a workflow."""
        key = scope, workflow_id
        if not self.is_shared(*key):
            return False
        stays = self._asked.setdefault(key, asyncio.Event())
        try:
            await self._replicas.tell_awaited(scope, workflow_id, "leaving")
            async with asyncio.timeout(_ANSWER_WITHIN_S):
                return await stays.wait()
        except (BusError, TimeoutError):
            return False
        finally:
            self._asked.pop(key, None)

    def wants(self, scope: Scope, workflow_id: str) -> bool:
        """Whether signals about this workflow are wanted here."""
        asked = (scope, UUID(workflow_id)) in self._asked
        return asked or self._notifier.is_awaited(scope, workflow_id)

    async def on_workflow_awaited(self, signal: WorkflowAwaited) -> None:
        """Note, or answer, the signal of another gateway."""
        if signal.gateway == self._instance:
            return
        key = signal.scope, signal.workflow_id
        if signal.what == "staying":
            if key in self._asked:
                self._asked[key].set()
        elif self._notifier.is_awaited(signal.scope, str(signal.workflow_id)):
            self._share(key)
            if signal.what == "leaving":
                await self._replicas.tell_awaited(*key, "staying")

    def _share(self, key: _Key) -> None:
        if len(self._shared) >= _MOST_SHARED:
            self._shared = {
                each for each in self._shared if self._notifier.is_awaited(each[0], str(each[1]))
            }
        self._shared.add(key)
