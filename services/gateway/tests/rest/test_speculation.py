"""An intent with a context: the best capability runs, or suggestions say why none did."""

import pytest

from pml_common.contracts import catalog
from pml_common.contracts.capability import Usage
from pml_common.contracts.learner import Feedback, GiveFeedback
from pml_common.contracts.parameters import CERTAIN
from pml_common.contracts.registry import CapabilityHit
from pml_common.contracts.structure import DynamicCall
from pml_common.contracts.tool import JsonObject
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.cached import MEMOIZE, choose, learn
from services.gateway.tests.support.dns import example
from services.gateway.tests.support.harness import Json, World, Worlds

pytestmark = pytest.mark.integration

SCHEMA: Json = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["path"],
}


def find(w: World, score: float = 0.9, code: str = "return 1;", **changed: object) -> None:
    """Let discovery find `fs:look` with this score."""
    learn(w, code, parameters_schema=SCHEMA, **changed)
    hit = CapabilityHit(
        id=w.peers.names["fs:look"].capability_id,
        name="fs:look",
        score=score,
        description="looks",
        parameters_schema=SCHEMA,
        tools_used=(),
        usage=Usage(),
    )
    w.peers.known_hits = (hit,)


async def speculate(w: World, context: Json | None = None, **more: object) -> Json:
    body = {"intent": "look", "context": {"path": "/a"} if context is None else context, **more}
    answer = await w.http.post("/api/execute", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_best_capability_is_run_with_what_it_takes_of_the_context(w: World) -> None:
    find(w)
    answer = await speculate(w, {"path": "/a", "colour": "red"})
    assert answer["status"] == "success"
    assert answer["speculation"] == {
        "outcome": "ran",
        "message": "Ran fs:look, whose score 0.90 reaches the threshold 0.50. Not used: colour.",
        "threshold": 0.5,
        "capability": "fs:look",
        "score": 0.9,
        "missing": [],
        "unused": ["colour"],
    }
    (run,) = w.peers.runs
    assert (run.args, run.called_as, run.intent) == ({"path": "/a"}, "fs:look", "look")
    assert run.discovery_id is not None


@pytest.mark.parametrize(
    ("score", "context", "outcome", "said"),
    [
        (0.49, {"path": "/a"}, "below_threshold", "has the score 0.49, below the threshold 0.50"),
        (0.9, {"file": "/a"}, "missing_arguments", "the context lacks path."),
        (0.9, {"path": 3}, "unfit_arguments", "args.path is 3, and must be a string."),
    ],
)
async def test_otherwise_nothing_runs_and_the_answer_says_why(
    w: World, score: float, context: Json, outcome: str, said: str
) -> None:
    certain = {"properties": {"path": {"type": "string"}}}
    find(w, score)
    learn(w, parameters_schema={**SCHEMA, CERTAIN: certain})
    answer = await speculate(w, context)
    note = answer["speculation"]
    assert (answer["status"], note["outcome"]) == ("suggestions", outcome)
    assert said in note["message"]
    assert note["missing"] == (["path"] if outcome == "missing_arguments" else [])
    assert [hit["name"] for hit in answer["suggestions"]] == ["fs:look", "read"]
    assert answer["discovery_id"]
    assert w.peers.runs == []


@pytest.mark.parametrize(
    ("good", "said"), [("fs:look@2", "fs:look@2 is healthy."), (None, "no earlier version")]
)
async def test_what_fails_is_not_run_and_the_version_to_call_is_named(
    w: World, good: str | None, said: str
) -> None:
    find(w)
    (hit,) = w.peers.known_hits
    failing = {"health": "failing", "last_good": good}
    w.peers.known_hits = (hit.model_copy(update=failing),)
    answer = await speculate(w)
    note = answer["speculation"]
    assert (answer["status"], note["outcome"]) == ("suggestions", "failing")
    assert said in note["message"]
    assert (answer["suggestions"][0]["health"], w.peers.runs) == ("failing", [])


async def test_without_a_capability_the_tools_are_suggested(w: World) -> None:
    answer = await speculate(w)
    assert answer["speculation"]["outcome"] == "no_capability"
    assert [hit["name"] for hit in answer["suggestions"]] == ["read"]
    alone = await w.http.post("/api/execute", json={"intent": "look"})
    assert "speculation" not in alone.json()


@pytest.mark.parametrize(("code", "outcome"), [("ask", "needs_approval"), ("deny", "unavailable")])
async def test_what_needs_approval_or_is_denied_is_not_run(
    w: World, code: str, outcome: str
) -> None:
    find(w, code=code)
    answer = await speculate(w)
    assert (answer["status"], answer["speculation"]["outcome"]) == ("suggestions", outcome)
    assert (await w.http.get("/api/workflows")).json()["total"] == 0
    assert (await w.http.get("/api/approvals")).json()["total"] == 0
    if code == "ask":
        assert "a person must approve it first" in answer["speculation"]["message"]


async def test_calls_that_are_known_only_in_the_run_are_not_run(w: World) -> None:
    find(w, code="return 'dynamic';")
    w.peers.dynamic = (DynamicCall(expression="mcp[a][b]", line=1, column=1),)
    answer = await speculate(w)
    assert answer["speculation"]["outcome"] == "needs_approval"
    assert "known only in the run" in answer["speculation"]["message"]


async def test_a_capability_that_is_gone_or_cannot_be_analysed_is_not_run(w: World) -> None:
    find(w)
    w.peers.names.clear()
    assert (await speculate(w))["speculation"]["outcome"] == "unavailable"
    find(w, code="syntax")
    assert (await speculate(w))["speculation"]["outcome"] == "unavailable"


async def test_a_key_gets_the_first_answer_whatever_is_found_later(w: World) -> None:
    find(w)
    first = await speculate(w, idempotency_key="k")
    w.peers.known_hits = ()
    again = await speculate(w, idempotency_key="k")
    assert (again["status"], again["workflow_id"]) == ("success", first["workflow_id"])
    other = {"intent": "look", "context": {"path": "/b"}, "idempotency_key": "k"}
    assert (await w.http.post("/api/execute", json=other)).status_code == 409
    assert len(w.peers.runs) == 1


async def test_a_cached_result_answers(w: World) -> None:
    find(w)
    await choose(w, MEMOIZE)
    await speculate(w)
    assert (await speculate(w))["cached"]
    assert len(w.peers.runs) == 1


async def test_what_became_of_guesses_moves_the_threshold(w: World) -> None:
    async def judge(query: GiveFeedback) -> Feedback:
        return example(catalog.GIVE_FEEDBACK)

    await w.peers.bus.serve(catalog.GIVE_FEEDBACK, judge)
    find(w)
    first = await speculate(w)
    assert (await speculate(w, dry_run=True))["speculation"]["outcome"] == "ran"
    path = f"/api/workflows/{first['workflow_id']}/feedback"
    at_first = (await w.http.get("/api/speculation")).json()
    assert (at_first["threshold"], at_first["good"]) == (0.499, 1)
    for _ in range(2):
        assert (await w.http.post(path, json={"useful": False})).status_code == 200
    named = await w.execute("return 1;")
    of_no_guess = f"/api/workflows/{named['workflow_id']}/feedback"
    assert (await w.http.post(of_no_guess, json={"useful": False})).status_code == 200
    judged = (await w.http.get("/api/speculation")).json()
    assert (judged["threshold"], judged["good"], judged["bad"]) == (0.509, 0, 1)
    assert (judged["configured"], judged["lowest"], judged["highest"]) == (0.5, 0.4, 0.6)
    find(w, 0.505)
    below = (await speculate(w))["speculation"]
    assert (below["outcome"], below["threshold"], below["score"]) == (
        "below_threshold",
        0.509,
        0.505,
    )


async def test_a_span_of_zero_fixes_the_threshold(world: Worlds) -> None:
    async with world(gateway_speculation_span=0.0) as w:
        find(w)
        await speculate(w)
        told = (await w.http.get("/api/speculation")).json()
        assert (told["threshold"], told["fixed"], told["good"]) == (0.5, True, 0)


async def test_the_same_over_mcp(w: World) -> None:
    find(w)
    tools = w.tools
    args: JsonObject = {"intent": "look", "context": {"path": "/a"}}
    answer = await tools.call(Caller(SCOPE, "mira"), "pml_execute", args)
    assert answer.structured_content
    assert answer.structured_content["speculation"]["outcome"] == "ran"
