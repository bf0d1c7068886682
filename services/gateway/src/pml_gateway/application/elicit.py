"""The elicit use case: the user of an agent's client decides the approval that a call waits for."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from pml_common.contracts.gateway import DecidedThrough
from pml_gateway.application.decide import Decisions
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.approval_form import (
    ApprovalForm,
    AskedApproval,
    FormAnswer,
    GivenAnswer,
    decide_of,
    form_of,
)
from pml_gateway.domain.api.elicitation import ElicitationSetting
from pml_gateway.domain.api.errors import Conflict, NotFound
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import Asker, Caller, CallerSide, ElicitationSettings

log = logging.getLogger(__name__)

Begin = Callable[[], Awaitable[ExecuteResponse]]
Resume = Callable[[UUID, CallerSide], Awaitable[ExecuteResponse]]

_OFF = (
    "the answer to the form decided nothing: forms that are answered over this credential's "
    "connection do not count (`pml approvals elicitation on` lets them)"
)


@dataclass(frozen=True)
class Elicitations:
    """Asks the user of the client that makes a call to decide the approval that it waits for, if
    the credential may elicit. Only the caller's own workflows are decided so."""

    decisions: Decisions
    workflows: WorkflowService
    settings: ElicitationSettings
    now: Callable[[], datetime]

    async def setting(self, caller: Caller) -> ElicitationSetting:
        """Return whether forms count for the caller's credential. Raises StorageUnavailable."""
        return await self.settings.of(caller.scope, caller.principal)

    async def set(self, caller: Caller, by: str, *, may_elicit: bool) -> ElicitationSetting:
        """Set whether forms count for the caller's credential. Raises StorageUnavailable."""
        setting = ElicitationSetting(
            principal=caller.principal, may_elicit=may_elicit, set_by=by, set_at=self.now()
        )
        await self.settings.set(caller.scope, setting)
        log.info("%s set may_elicit of %s to %s", by, caller.principal, may_elicit)
        return await self.setting(caller)

    async def asks(self, caller: Caller, workflow_id: UUID, side: CallerSide) -> bool:
        """Whether the caller's user can be asked about a workflow now."""
        if side.asker is None or side.asker.given is not None:
            return False
        return await self._form(caller, workflow_id) is not None

    async def form(self, caller: Caller, workflow: Workflow) -> ApprovalForm | None:
        """Return the form for an approval that the caller's user may decide now. Raises
        StorageUnavailable."""
        if workflow.requested.principal != caller.principal:
            return None
        form = form_of(workflow, self.now())
        return form if form and (await self.setting(caller)).may_elicit else None

    async def around(
        self, caller: Caller, side: CallerSide, begin: Begin, resume: Resume
    ) -> ExecuteResponse:
        """Return the answer of a call: `begin` makes it, and `resume` waits for its workflow after
        each decision. Raises what they raise, and InputNeeded."""
        asker = side.asker
        if asker is None:
            return await begin()
        if asker.given is not None:
            return await self.resumed(caller, side, asker, asker.given, resume)
        return await self._asked(caller, side, asker, await begin(), resume)

    async def resumed(
        self, caller: Caller, side: CallerSide, asker: Asker, given: GivenAnswer, resume: Resume
    ) -> ExecuteResponse:
        """Return the answer of a call that is made again with the answer to its form."""
        asked, answer = given.asked, given.answer
        notice = answer and await self.decide(caller, asked, answer, asker.through)
        response = await resume(asked.workflow_id, side)
        if answer is None or answer.action != "cancel":
            response = await self._asked(caller, side, asker, response, resume)
        return _with_notice(response, notice)

    async def _asked(
        self,
        caller: Caller,
        side: CallerSide,
        asker: Asker,
        response: ExecuteResponse,
        resume: Resume,
    ) -> ExecuteResponse:
        """Ask about each approval that the workflow comes to, until there is none or the user does
        not answer. The time for which a form is shown does not count as the caller's wait."""
        notice = None
        while response.approval is not None and response.workflow_id is not None:
            form = await self._form(caller, response.workflow_id)
            if form is None:
                break
            began = _now()
            answer = await self._answer_to(caller, form, asker)
            if answer is not None:
                notice = await self.decide(caller, form.asked, answer, asker.through)
                if answer.action == "cancel":
                    break
            elif await self._form(caller, response.workflow_id) == form:
                break
            if side.answer_by is not None:
                side = replace(side, answer_by=side.answer_by + _now() - began)
            response = await resume(response.workflow_id, side)
        return _with_notice(response, notice)

    async def _form(self, caller: Caller, workflow_id: UUID) -> ApprovalForm | None:
        workflow = await self.workflows.known(caller.scope, workflow_id)
        return None if workflow is None else await self.form(caller, workflow)

    async def _answer_to(
        self, caller: Caller, form: ApprovalForm, asker: Asker
    ) -> FormAnswer | None:
        """Return the user's answer; None where there is none, or the approval is decided elsewhere
        meanwhile."""
        asked = form.asked
        asking = asyncio.ensure_future(asker.ask(form))
        elsewhere = asyncio.ensure_future(
            self.workflows.wait_for_decision(caller.scope, asked.workflow_id, asked.approval_id)
        )
        try:
            await asyncio.wait({asking, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            for task in (asking, elsewhere):
                task.cancel()
            await asyncio.gather(asking, elsewhere, return_exceptions=True)

    async def decide(
        self, caller: Caller, asked: AskedApproval, answer: FormAnswer, through: DecidedThrough
    ) -> str | None:
        """Take the decision of an answer; return why it decided nothing, if the user meant it to.
        Raises InvalidRequest and errors of storage."""
        decide = decide_of(asked, answer)
        if decide is None:
            return None
        if not (await self.setting(caller)).may_elicit:
            return _OFF
        try:
            await self.decisions.decide(caller, asked.workflow_id, decide, through)
        except (Conflict, NotFound) as refused:
            return f"the answer to the form decided nothing: {refused}"
        return None


def _with_notice(response: ExecuteResponse, notice: str | None) -> ExecuteResponse:
    if notice is None:
        return response
    return response.with_notices(notice)


def _now() -> float:
    return asyncio.get_running_loop().time()
