"""The setting that lets forms answered over the agent's connection decide approvals."""

import httpx2

from services.gateway.tests.support.harness import APPROVER, world

PATH = "/api/approvals/elicitation"


async def test_the_approver_alone_sets_it_and_it_says_who_did() -> None:
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


async def test_a_decision_with_the_key_has_no_other_way() -> None:
    async with world() as w:
        asked = await w.execute("ask")
        await w.decide(asked["workflow_id"], "approve")
        approval = (await w.http.get(f"/api/workflows/{asked['workflow_id']}/approval")).json()
    assert (approval["decided_by"], approval["decided_through"]) == ("approver:noor", None)
