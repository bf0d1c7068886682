"""Deletion of a principal's data over REST."""

import pytest

from pml_common.contracts.gateway import PrincipalDataDeleted, WorkflowDataDeleted
from services.gateway.tests.support.harness import APPROVER_KEY, World, Worlds

pytestmark = pytest.mark.integration

APPROVER = {"Authorization": f"Bearer {APPROVER_KEY}"}
OWN = "/api/principals/mira"


def told(w: World) -> list[PrincipalDataDeleted]:
    stream = w.broker.streams["PML_GATEWAY_EVT"]
    return [
        PrincipalDataDeleted.model_validate_json(stored.envelope.data)
        for stored in stream.messages
        if ".principal-data-deleted." in stored.envelope.subject
    ]


def of_workflows(w: World) -> set[str]:
    stream = w.broker.streams["PML_GATEWAY_EVT"]
    return {
        str(WorkflowDataDeleted.model_validate_json(stored.envelope.data).workflow_id)
        for stored in stream.messages
        if ".workflow-data-deleted." in stored.envelope.subject
    }


async def test_a_principal_deletes_its_data_part_by_part_and_again(
    monkeypatch: pytest.MonkeyPatch, world: Worlds
) -> None:
    monkeypatch.setattr("pml_gateway.application.delete_principal.WORKFLOWS_OF_PART", 2)
    async with world() as w:
        made = {(await w.execute(f"return {n};"))["workflow_id"] for n in range(3)}
        first = (await w.http.delete(OWN)).json()
        assert (first["deleted"], first["not_ended"]) == (2, [])
        assert told(w) == []
        rest = (await w.http.delete(OWN, params={"cursor": first["next_cursor"]})).json()
        assert (rest["deleted"], rest["next_cursor"]) == (1, None)
        assert of_workflows(w) == made
        for each in made:
            assert (await w.http.get(f"/api/workflows/{each}")).status_code == 410
        (event,) = told(w)
        assert (event.principal, event.deleted_by) == ("mira", "mira")
        recorded = (await w.http.get("/api/principal-deletions")).json()["deletions"]
        assert [each["deletion_id"] for each in recorded] == [str(event.deletion_id)]
        assert (recorded[0]["principal"], recorded[0]["deleted_by"]) == ("mira", "mira")
        again = (await w.http.delete(OWN)).json()
        assert again["deleted"] == 0


async def test_only_the_principal_and_an_admin_may(world: Worlds) -> None:
    async with world() as w:
        done = await w.execute("return 1;")
        other = await w.http.delete("/api/principals/noor")
        assert other.status_code == 403
        assert "may not delete the data of noor" in other.json()["error"]["message"]
        assert (await w.http.delete(OWN, headers={"Authorization": "Bearer no"})).status_code == 401
        assert told(w) == []
        by_admin = (await w.http.delete(OWN, headers=APPROVER)).json()
        assert by_admin["deleted"] == 1
        assert told(w)[0].deleted_by.endswith("noor")
        assert of_workflows(w) == {done["workflow_id"]}


async def test_an_approver_who_is_no_admin_may_not(world: Worlds) -> None:
    async with world(gateway_approver_is_admin=False) as w:
        await w.execute("return 1;")
        assert (await w.http.delete(OWN, headers=APPROVER)).status_code == 403
        assert of_workflows(w) == set()


async def test_what_has_not_ended_is_named_and_kept(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        part = (await w.http.delete(OWN)).json()
        assert (part["deleted"], part["not_ended"]) == (0, [asked["workflow_id"]])
        assert (await w.http.get(f"/api/workflows/{asked['workflow_id']}")).status_code == 200
        foreign = await w.http.delete(OWN, params={"cursor": "none"})
        assert foreign.status_code == 422
