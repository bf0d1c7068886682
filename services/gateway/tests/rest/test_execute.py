"""POST /api/execute, from request to answer."""

import asyncio
from dataclasses import replace
from typing import Never
from uuid import UUID

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts import catalog, ids
from pml_common.contracts.gateway import AskOutcome
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.adapters.local_notifier import LocalNotifier
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.acceptance import Program
from pml_gateway.ports import HERE, Caller
from services.gateway.tests.support.builders import CODE_HASH, ELSEWHERE, SCOPE, workflow
from services.gateway.tests.support.fakes import record
from services.gateway.tests.support.harness import World, Worlds

pytestmark = pytest.mark.integration

CAPABILITY = str(ids.capability_id(SCOPE, CODE_HASH))


async def test_a_program_runs_and_its_result_is_returned(world: Worlds) -> None:
    async with world() as w:
        answer = await w.execute("return 1;", args={"path": "/a"}, intent="look", timeout=60)
        assert answer == {
            "status": "success",
            "result": [
                {
                    "status": "ok",
                    "result": {"path": "/a"},
                    "message": None,
                    "fault": None,
                    "code": None,
                }
            ],
            "capability_id": CAPABILITY,
            "workflow_id": answer["workflow_id"],
            "calls": {"made": 0, "failed": 0, "by_tool": {}, "slowest": None},
            "tasks": [],
        }
        assert w.servers.made == ["fs:read"]
        (run,) = w.peers.runs
        assert (run.timeout_s, run.principal, run.intent) == (60, "mira", "look")


async def test_a_program_that_was_changed_before_it_ran_is_answered_with_a_notice(
    world: Worlds,
) -> None:
    async with world() as w:
        answer = await w.execute("```\nreturn 1;\n```")
        assert answer["status"] == "success"
        assert answer["notices"] == ["The fence was taken off."]
        assert w.peers.requests[0].submitted
        assert (await w.workflow(answer["workflow_id"]))["code"] == "```\nreturn 1;\n```"
        again = await w.execute("```\nreturn 1;\n```")
        assert again["notices"] == answer["notices"]


async def test_a_failed_run_is_an_error_and_never_a_success(world: Worlds) -> None:
    async with world() as w:
        answer = await w.execute("fail")
        assert answer["status"] == "error"
        assert answer["error"]["kind"] == "user_error"
        assert "result" not in answer


async def test_broken_syntax_is_an_error_with_line_and_column(world: Worlds) -> None:
    async with world() as w:
        answer = await w.execute("syntax (")
        assert answer["status"] == "error"
        error = answer["error"]
        assert (error["kind"], error["line"], error["column"]) == ("syntax", 2, 9)
        assert error["diagnostics"][0]["source_line"] == "f(;"
        assert w.peers.runs == []


async def test_a_denied_program_never_runs(world: Worlds) -> None:
    async with world() as w:
        answer = await w.execute("deny")
        assert answer["error"]["kind"] == "denied"
        assert w.peers.runs == []


async def test_a_program_that_needs_approval_returns_what_would_run_and_why(world: Worlds) -> None:
    async with world() as w:
        answer = await w.execute("ask")
        assert answer["status"] == "approval_required"
        assert answer["approval"]["tools"] == ["fs:read"]
        assert answer["approval"]["reasons"] == ["fs:read is for a person to decide"]
        (call,) = answer["approval"]["calls"]
        assert (call["tool"], call["verdict"], call["line"]) == ("fs:read", "ask", 1)
        assert call["arguments"] == [
            {
                "name": "path",
                "kind": "literal",
                "words": "literal",
                "text": '"/notes.txt"',
                "marks": ["absolute path"],
            }
        ]
        assert answer["approval"]["whole_at"] == f"/api/workflows/{answer['workflow_id']}/approval"
        assert w.peers.runs == []


async def test_a_name_is_learned_unless_another_capability_has_it(world: Worlds) -> None:
    async with world() as w:
        answer = await w.execute("return 1;", name="fs:look")
        assert answer["capability_name"] == "fs:look"
        w.peers.names["fs:taken"] = record(workflow(), "fs:taken", "cd34" * 16)
        refused = await w.execute("return 2;", name="fs:taken")
        assert refused["error"]["kind"] == "rejected"
        assert refused["error"]["message"] == "fs:taken of agent-7 is other code"
        w.peers.names["fs:own"] = record(workflow(), "fs:own")
        assert (await w.execute("return 3;", name="fs:own"))["status"] == "success"


async def test_a_name_is_given_or_released_before_the_end_is_answered(world: Worlds) -> None:
    async with world() as w:
        failed = await w.execute("fail", name="fs:look")
        assert (failed["status"], failed.get("capability_name")) == ("error", None)
        assert w.peers.settled == [("fs:look", False)]
        assert (await w.execute("return 1;", name="fs:look"))["capability_name"] == "fs:look"
        assert w.peers.settled[1:2] == [("fs:look", True)]
        assert w.peers.reserved == {}
        await w.execute("return 2;")
        assert len(w.peers.settled) == 2


async def test_a_name_that_is_given_later_is_told_and_never_a_provisional_one(
    world: Worlds,
) -> None:
    async with world() as w:
        provisional = record(workflow(), "unnamed_1f3e")
        w.peers.names[CAPABILITY] = provisional
        assert (await w.execute("return 1;"))["capability_name"] == "unnamed_1f3e"
        w.peers.is_busy = True
        answer = await w.execute("return 1;", name="fs:look", fresh=True)
        assert (answer["status"], answer.get("capability_name")) == ("success", None)
        (notice,) = answer["notices"]
        assert notice.startswith("fs:look is given later: the registry does not answer.")
        failed = await w.execute("fail", name="fs:other")
        assert (failed["status"], failed.get("notices")) == ("error", None)
        w.peers.is_busy = False
        got = await w.tools.call(
            Caller(SCOPE, "mira"), "pml_get_task_result", {"workflow_id": answer["workflow_id"]}
        )
        assert ("fs:look", True) in w.peers.settled
        assert "is given later" not in str(got.meta)


async def test_a_name_that_was_not_given_is_told(world: Worlds) -> None:
    async with world() as w:
        w.peers.names[CAPABILITY] = record(workflow(), "unnamed_1f3e")
        w.peers.refuses_names = True
        answer = await w.execute("return 1;", name="fs:look")
        assert (answer["status"], answer.get("capability_name")) == ("success", None)
        (notice,) = answer["notices"]
        assert notice.startswith("fs:look was not given to this program")


async def test_a_run_without_a_result_releases_its_name(world: Worlds) -> None:
    async with world() as w:
        w.peers.names[CAPABILITY] = record(workflow(), "unnamed_1f3e")
        answer = await w.execute("return void 0;", name="fs:look")
        assert (answer["status"], answer.get("capability_name")) == ("success", None)
        assert answer["notices"] == [
            "fs:look was not given to this program, whose run had no result."
        ]
        assert w.peers.settled == [("fs:look", False)]


async def test_a_dry_run_reserves_no_name(world: Worlds) -> None:
    async with world() as w:
        answer = await w.execute("return 1;", name="fs:look", dry_run=True)
        assert (answer["status"], answer.get("capability_name")) == ("success", None)
        assert (w.peers.reserved, w.peers.settled) == ({}, [])


async def test_a_version_is_asked_for_with_its_tag_and_summary(world: Worlds) -> None:
    async with world() as w:
        more = {"update": True, "version_tag": "v1.2.0", "change_summary": "Looks twice."}
        await w.execute("return 1;", name="fs:look", **more)
        (asked,) = w.peers.requests
        assert (asked.update, asked.version_tag, asked.change_summary) == tuple(more.values())


async def test_how_a_workflow_stands_is_told_to_the_registry(world: Worlds) -> None:
    async with world() as w:

        async def told(workflow_id: str) -> str:
            query = AskOutcome(scope=SCOPE, workflow_id=UUID(workflow_id))
            return (await w.parts.bus.request(catalog.ASK_OUTCOME, query)).state

        done = await w.execute("return 1;")
        failed = await w.execute("fail")
        void = await w.execute("return void 0;")
        waits = await w.execute("ask")
        assert await told(done["workflow_id"]) == "succeeded"
        assert await told(void["workflow_id"]) == "failed"
        assert await told(failed["workflow_id"]) == "failed"
        assert await told(waits["workflow_id"]) == "under_way"
        assert await told(str(UUID(int=7))) == "unknown"


async def test_the_registry_is_told_which_program_a_workflow_ran_but_not_of_a_dry_run(
    world: Worlds,
) -> None:
    async with world() as w:

        async def told(workflow_id: str) -> UUID | None:
            query = AskOutcome(scope=SCOPE, workflow_id=UUID(workflow_id))
            return (await w.parts.bus.request(catalog.ASK_OUTCOME, query)).capability_id

        done = await w.execute("return 1;")
        tried = await w.execute("return 1;", dry_run=True)
        assert str(await told(done["workflow_id"])) == done["capability_id"]
        assert await told(tried["workflow_id"]) is None
        assert await told(str(UUID(int=7))) is None


async def test_ac02_a_capability_runs_by_name_with_arguments(world: Worlds) -> None:
    async with world() as w:
        known = record(workflow(ExecuteRequest(code="return 'known';")), "fs:known")
        known = known.model_copy(update={"aliases": ("fs:former",)})
        w.peers.names |= {"fs:known": known, str(known.capability_id): known}
        body = {"capability": "fs:known", "args": {"path": "/b"}}
        answer = (await w.http.post("/api/execute", json=body)).json()
        assert answer["status"] == "success"
        assert answer["capability_name"] == "fs:known"
        (request,) = w.peers.requests
        assert (request.code, request.args) == ("return 'known';", {})
        assert w.peers.runs[-1].args == {"path": "/b"}
        assert request.known_as == ("fs:known", "fs:former")
        await w.execute("return 'known';")
        assert w.peers.requests[-1].known_as == ()


async def test_what_a_caller_should_change_is_told_with_the_answer(world: Worlds) -> None:
    async with world() as w:
        known = record(workflow(ExecuteRequest(code="return 'known';")), "fs:known")
        notice = "fs:former was renamed to fs:known; use the new name"
        w.peers.names["fs:former"] = known.model_copy(update={"notices": (notice,)})
        w.peers.names["fs:known"] = known
        told, plain = [
            (await w.http.post("/api/execute", json={"capability": name})).json()
            for name in ("fs:former", "fs:known")
        ]
        assert (told["status"], told["notices"]) == ("success", [notice])
        assert "notices" not in plain


async def test_an_unknown_capability_is_not_found(world: Worlds) -> None:
    async with world() as w:
        w.peers.names["fs:theirs"] = record(workflow(scope=ELSEWHERE), "fs:theirs")
        for name in ("fs:nowhere", "fs:theirs"):
            answer = await w.http.post("/api/execute", json={"capability": name})
            assert answer.status_code == 404
            assert name in answer.json()["error"]["message"]
        assert w.peers.requests == []


async def test_an_intent_alone_returns_suggestions(world: Worlds) -> None:
    async with world() as w:
        answer = (await w.http.post("/api/execute", json={"intent": "read a file"})).json()
        assert answer["status"] == "suggestions"
        assert [hit["id"] for hit in answer["suggestions"]] == ["fs:read"]
        assert "workflow_id" not in answer


async def test_a_caller_waits_as_long_as_the_program_may_run_and_no_longer(world: Worlds) -> None:
    async with world() as w:
        answer = await w.execute("hang", timeout=0.2)  # waits: so long
        assert answer["status"] == "running"
        w.peers.release.set()
        await eventually(lambda: _is(w, answer["workflow_id"], "success"))


async def _is(w: World, workflow_id: object, status: str) -> bool:
    return (await w.workflow(workflow_id))["status"] == status


async def test_the_same_key_runs_once_and_returns_the_same(world: Worlds) -> None:
    async with world() as w:
        first = await w.execute("return 1;", idempotency_key="k")
        again = await w.execute("return 1;", idempotency_key="k")
        assert again == first
        assert len(w.peers.runs) == 1


async def test_the_same_key_at_once_runs_once(world: Worlds) -> None:
    async with world() as w:
        answers = await asyncio.gather(
            *(w.execute("return 1;", idempotency_key="k") for _ in range(5))
        )
        assert all(answer == answers[0] for answer in answers)
        assert len(w.peers.runs) == 1


async def test_the_same_key_for_something_else_is_a_conflict(world: Worlds) -> None:
    async with world() as w:
        await w.execute("return 1;", idempotency_key="k")
        body = {"code": "return 2;", "idempotency_key": "k"}
        answer = await w.http.post("/api/execute", json=body)
        assert answer.status_code == 409
        assert "another request" in answer.json()["error"]["message"]


async def test_a_workflow_continues_when_its_caller_disconnects(world: Worlds) -> None:
    async with world() as w:
        waiting = asyncio.create_task(w.execute("hang", idempotency_key="k"))
        await eventually(lambda: w.peers.runs)
        waiting.cancel()
        await asyncio.wait({waiting})
        w.peers.release.set()
        workflow_id = ids.workflow_id(SCOPE, "mira", "k")
        await eventually(lambda: _is(w, workflow_id, "success"))


async def test_a_caller_whose_notification_was_lost_is_answered(world: Worlds) -> None:
    async with world() as w:
        workflows, terms = w.parts.workflows, replace(w.parts.workflows.terms, poll_every_s=0.05)
        deaf = replace(workflows, notifier=LocalNotifier(), terms=terms)
        programs = replace(w.parts.programs, workflows=deaf)
        request = ExecuteRequest(code="return 1;")
        ended = await programs.execute(SCOPE, "mira", request, HERE, Program("return 1;"))
        assert ended.workflow.state == "succeeded"


async def test_waiting_callers_are_answered_when_the_gateway_stops(world: Worlds) -> None:
    async with world() as w:
        waiting = asyncio.create_task(w.execute("hang"))
        await eventually(lambda: w.peers.runs)
        w.parts.notifier.close()
        answer = await waiting
        assert answer["status"] == "running"
        assert UUID(answer["workflow_id"])


async def test_a_known_key_needs_no_analysis(world: Worlds) -> None:
    async with world() as w:
        first = await w.execute("return 1;", idempotency_key="k")
        before = len(w.peers.requests)
        again = await w.execute("return 1;", idempotency_key="k")
        other = await w.http.post(
            "/api/execute", json={"code": "return 2;", "idempotency_key": "k"}
        )
        assert again["workflow_id"] == first["workflow_id"]
        assert other.status_code == 409
        assert len(w.peers.requests) == before


async def test_a_caller_is_answered_at_the_end_of_its_run_while_the_store_is_away(
    monkeypatch: pytest.MonkeyPatch, world: Worlds
) -> None:
    async def away(*_: object) -> Never:
        raise StorageUnavailable("Postgres is away")

    async with world() as w:
        asked = asyncio.ensure_future(w.execute("hang"))
        await eventually(lambda: w.peers.runs)
        with monkeypatch.context() as outage:
            outage.setattr(w.kept, "end", away)
            outage.setattr(w.kept, "get", away)
            w.peers.release.set()
            told = await asked
            assert told["status"] == "success"
            assert (await w.workflow(told["workflow_id"]))["status"] == "success"
        workflow_id = UUID(told["workflow_id"])

        async def stored() -> str | None:
            found = await w.kept.get(SCOPE, workflow_id)
            return found and found.state

        assert await stored() == "running"

        async def ended() -> bool:
            return await stored() == "succeeded"

        await eventually(ended)
