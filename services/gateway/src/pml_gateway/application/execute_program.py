"""Execution of a program: its turn, its workflow, and the wait for its end."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from opentelemetry import propagate, trace

from pml_common.contracts import ids
from pml_common.contracts.decision import Policy
from pml_common.contracts.scope import Scope
from pml_common.contracts.source import CapabilitySource
from pml_common.telemetry import vocabulary
from pml_gateway.application.admission import Admission
from pml_gateway.application.first_step import FirstStep
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.workflow.acceptance import IncomingRequest, Terms, accepted
from pml_gateway.domain.workflow.turns import Party
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.domain.workflow.workflow_state import Rules


@dataclass(frozen=True)
class ProgramExecution:
    """Executes programs as workflows. `policy_of` returns a scope's present policy;
    `require_ready` raises BusUnavailable while NATS does not answer and Unavailable while a disk
    is almost full, so that nothing is accepted which no service would handle."""

    workflows: WorkflowService
    first_step: FirstStep
    admission: Admission
    policy_of: Callable[[Scope], Policy]
    terms: Terms
    rules: Rules
    now: Callable[[], datetime]
    require_ready: Callable[[], Awaitable[None]]

    async def execute(
        self,
        scope: Scope,
        principal: str,
        request: ExecuteRequest,
        code: str,
        known_as: tuple[str, ...] = (),
        source: CapabilitySource | None = None,
    ) -> Workflow:
        """Accept `code` once its turn comes, and wait for its end or its approval, for as long as
        it may run and a margin. Raises Busy, Conflict, errors of the bus and of storage."""
        await self.require_ready()
        key = request.idempotency_key or uuid4().hex
        workflow_id = ids.workflow_id(scope, key)
        patience_s = (request.timeout or self.terms.default_timeout_s) + self.terms.answer_margin_s
        deadline = asyncio.get_running_loop().time() + patience_s
        party, is_new = Party(scope, principal), request.idempotency_key is None
        with self.workflows.subscribe(scope, workflow_id) as waiter:
            turn = self.admission.turn(party, workflow_id, patience_s, is_new=is_new)
            async with turn as admitted:
                trace.get_current_span().set_attribute(vocabulary.WORKFLOW_ID, str(workflow_id))
                asked = IncomingRequest(
                    scope=scope,
                    principal=principal,
                    request=request,
                    code=code,
                    idempotency_key=key,
                    at=self.now(),
                    policy=self.policy_of(scope),
                    known_as=known_as,
                    source=source,
                    traceparent=_traceparent(),
                )
                new = accepted(asked, self.terms, self.rules)
                admitted.workflow = stored = await self._stored(new, is_new=is_new)
                _require_same_request(stored, new)
                admitted.workflow = latest = await self.workflows.wait(stored, waiter, deadline)
                _require_same_request(latest, new)
                return latest

    async def _stored(self, new: Workflow, *, is_new: bool) -> Workflow:
        """Return the workflow that has the key, or store the new one after its first step."""
        known = None if is_new else await self.workflows.known(new.scope, new.workflow_id)
        return known or await self.workflows.accept(await self.first_step.of(new))


def _require_same_request(stored: Workflow, new: Workflow) -> None:
    if stored.request_hash != new.request_hash:
        raise Conflict(
            f"idempotency_key {new.idempotency_key} stands for another request; use another key"
        )


def _traceparent() -> str | None:
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier.get("traceparent")
