"""The setting that lets forms answered over the agent's connection decide approvals."""

from uuid import UUID

import httpx2
import pytest

from pml_common.contracts.gateway import DecidedThrough
from pml_gateway.application import elicit
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.approval_form import ApprovalForm, FormAnswer
from pml_gateway.domain.api.task_results import GetTaskResult
from pml_gateway.ports import Asker, Caller, CallerSide
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.harness import APPROVER, Worlds

pytestmark = pytest.mark.integration

PATH = "/api/approvals/elicitation"


async def test_the_approver_alone_sets_it_and_it_says_who_did(world: Worlds) -> None:
    async with world() as w:

        async def sent(body: object, headers: dict[str, str] | None = None) -> httpx2.Response:
            return await w.http.post(PATH, json=body, headers=headers or {})

        off = {"principal": "mira", "may_elicit": False, "set_by": None, "set_at": None}
        assert (await w.http.get(PATH)).json() == off
        for headers in ({}, {"Authorization": "Bearer guessed"}):
            refused = await sent({"may_elicit": True}, headers)
            assert refused.status_code == 401
        for body in ({}, {"may_elicit": 1}, {"may_elicit": True, "principal": "eve"}):
            assert (await sent(body, APPROVER)).status_code == 422
        assert (await w.http.get(PATH)).json() == off
        on = (await sent({"may_elicit": True}, APPROVER)).json()
        assert (on["may_elicit"], on["set_by"]) == (True, "approver:noor")
        assert (await sent({"may_elicit": True}, APPROVER)).json() == on
        assert (await w.http.get(PATH)).json() == on


async def test_a_decision_with_the_key_has_no_other_way(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        await w.decide(asked["workflow_id"], "approve")
        approval = (await w.http.get(f"/api/workflows/{asked['workflow_id']}/approval")).json()
    assert (approval["decided_by"], approval["decided_through"]) == ("approver:noor", None)


class Slow(Asker):
    """Approves after an hour by the `clock`."""

    def __init__(self, clock: list[float]) -> None:
        self.given = None
        self.through = DecidedThrough(way="elicitation")
        self._clock = clock

    async def ask(self, form: ApprovalForm) -> FormAnswer | None:
        self._clock[0] += 3600
        return FormAnswer("accept", {"decision": "approve"})


async def test_the_time_of_a_form_is_not_the_callers_wait(
    monkeypatch: pytest.MonkeyPatch, world: Worlds
) -> None:
    clock, sides = [1000.0], list[CallerSide]()
    monkeypatch.setattr(elicit, "_now", lambda: clock[0])

    async def resume(workflow_id: UUID, side: CallerSide) -> ExecuteResponse:
        sides.append(side)
        return ExecuteResponse(status="running")

    async with world() as w:
        elicitations, mira = w.parts.use_cases.elicitations, Caller(SCOPE, "mira")
        await elicitations.set(mira, "noor", may_elicit=True)

        async def begin() -> ExecuteResponse:
            return await w.parts.use_cases.agents.execute(
                SCOPE, "mira", ExecuteRequest(code="ask", fresh=True)
            )

        for answer_by in (1045.0, None):
            side = CallerSide(answer_by=answer_by, asker=Slow(clock))
            answer = await elicitations.around(mira, side, begin, resume)
            assert answer.status == "running"
    assert [side.answer_by for side in sides] == [1045.0 + 3600, None]


@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_a_decision_that_arrives_before_anyone_waits_is_kept(
    decision: str, world: Worlds
) -> None:
    """The caller is gone; who comes back gets what became of it, by each way."""
    async with world() as w:
        asked = await w.execute("ask")
        workflow = asked["workflow_id"]
        assert not w.parts.notifier.is_awaited(SCOPE, str(workflow))
        assert (await w.decide(workflow, decision)).status_code == 200
        agents, mira = w.parts.use_cases.agents, Caller(SCOPE, "mira")
        wanted = GetTaskResult(workflow_id=workflow, wait_s=20)
        answer = await agents.result(mira, wanted)
        assert answer.status == ("success" if decision == "approve" else "error")
        assert len(w.peers.runs) == (decision == "approve")
