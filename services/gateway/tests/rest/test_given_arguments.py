"""Arguments of capabilities that are called by name: refused before anything runs, or doubted."""

import pytest

from pml_common.contracts.parameters import CERTAIN
from pml_common.contracts.tool import JsonObject
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.cached import learn, look
from services.gateway.tests.support.harness import World

pytestmark = pytest.mark.integration

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["path", "limit"],
    CERTAIN: {"properties": {"path": {"type": "string"}}, "required": ["path"]},
}
CALLER = Caller(SCOPE, "mira")


async def test_arguments_that_cannot_work_run_nothing(w: World) -> None:
    learn(w, parameters_schema=SCHEMA)
    answer = await w.http.post(
        "/api/execute", json={"capability": "fs:look", "args": {"path": 3, "limit": 1}}
    )
    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == (
        "args.path is 3, and must be a string. Nothing ran. fs:look takes path (string), "
        'limit (integer). Its schema: {"type": "string"}'
    )
    tools = w.tools
    calls: list[tuple[str, JsonObject]] = [
        ("cap_fs_look", {}),
        ("pml_execute", {"capability": "fs:look", "args": {}}),
    ]
    for name, args in calls:
        refused = await tools.call(CALLER, name, args)
        assert refused.is_error
        assert "args.path is missing. Nothing ran." in str(refused.content)
    assert w.peers.requests == w.peers.runs == []


@pytest.mark.parametrize(
    ("args", "doubt"),
    [
        (
            {"path": "/a", "limit": 1, "limti": 2},
            "args.limti is no known parameter of the capability; did you mean limit?",
        ),
        ({"path": "/a", "limit": "many"}, 'args.limit is "many", and must be an integer.'),
    ],
)
async def test_a_doubt_stands_in_the_answer(w: World, args: JsonObject, doubt: str) -> None:
    learn(w, parameters_schema=SCHEMA)
    answer = await look(w, "/a", args=args)
    assert (answer["status"], answer["notices"]) == ("success", [doubt])
    assert "notices" not in await look(w, "/a", args={"path": "/a", "limit": 1})
    tools = w.tools
    called = await tools.call(CALLER, "cap_fs_look", args)
    assert (called.is_error, called.meta) == (False, {"pml/notices": [doubt]})
    learn(w, "fail", parameters_schema=SCHEMA)
    failed = await tools.call(CALLER, "cap_fs_look", args)
    assert f"notice: {doubt}" in str(failed.content)


async def test_a_dry_run_takes_any_arguments(w: World) -> None:
    learn(w, parameters_schema=SCHEMA)
    body: JsonObject = {"capability": "fs:look", "args": {}, "dry_run": True}
    answer = (await w.http.post("/api/execute", json=body)).json()
    assert answer["status"] == "success", answer
    assert any("args.path is missing." in each for each in answer["notices"])
