"""The way of a capability: learned, found with a ready call, run for an intent, counted, judged."""

import json
from typing import cast

import pytest
from mcp_types import CallToolResult

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.agents import Mode, agent, answer_of, text_of
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e

INTENT = "say whether a marker file of the face exists"
CODE = """\
const { path }: { path: string } = args;
const found = await mcp.counting.peek({ path });
return found.exists;
"""


async def test_a_capability_is_found_run_for_an_intent_counted_and_judged(
    harness: StackHarness, mode: Mode
) -> None:
    name = f"face:marker_{mode}"
    path = {"path": str(harness.folder)}
    judged: Json = {}
    async with agent(harness, mode) as client:
        intent = f"{INTENT}, {mode}"
        program = {"intent": intent, "name": name, "code": f"const mode = '{mode}';\n{CODE}"}
        first = answer_of(await client.call_tool("pml_execute", {**program, "args": path}))
        assert first["result"] is True
        asked = {"intent": intent, "filter": {"type": "capability"}, "limit": 5}

        async def found() -> Json | None:
            page = answer_of(await client.call_tool("pml_discover", asked))
            hits = cast(list[Json], page["hits"])
            assert page["discovery_id"]
            return next((hit for hit in hits if hit["name"] == name), None)

        hit = await eventually(found)
        assert hit["mcp_tool"] == f"cap_face_marker_{mode}"
        assert hit["call"] == (
            f'const result = await capabilities.face_marker_{mode}({{ path: "<path>" }});'
        )

        refused = await client.call_tool(f"cap_face_marker_{mode}", {"path": 3})
        assert refused.is_error
        assert "args.path is 3, and must be a string. Nothing ran." in text_of(refused)

        guessed = answer_of(
            await client.call_tool(
                "pml_execute", {"intent": intent, "context": {**path, "more": 1}}
            )
        )
        note = cast(Json, guessed["speculation"])
        assert (note["outcome"], note["capability"], note["unused"]) == ("ran", name, ["more"])
        assert guessed["result"] is True
        lacking = {"intent": intent, "context": {"file": "x"}}
        suggested = answer_of(await client.call_tool("pml_execute", lacking))
        assert suggested["status"] == "suggestions"
        assert cast(Json, suggested["speculation"])["missing"] == ["path"]

        inside = f"return await mcp.cap.face_marker_{mode}(args);"
        again = answer_of(await client.call_tool("pml_execute", {"code": inside, "args": path}))
        assert again["result"] is True

        async def counted() -> Json | None:
            stats = await client.call_tool("meta_stats", {"server": "pml-capabilities"})
            usage = cast(list[Json], _value(stats)["usage"])
            mine = next((each for each in usage if each["tool_id"] == f"cap:{name}"), None)
            return mine if mine is not None and mine["calls"] == 2 else None

        assert (await eventually(counted))["succeeded"] == 2
        opinion = {"workflow_id": guessed["workflowId"], "useful": True}
        for _ in range(2):
            judged = _value(await client.call_tool("learn_feedback", opinion))
        assert judged["useful"] == 1
        told = cast(
            dict[str, float], _value(await client.call_tool("meta_stats", {}))["speculation"]
        )
        assert told["good"] >= 1
        assert told["threshold"] < told["configured"]

        async def ranked() -> Json | None:
            ranking = cast(Json, _value(await client.call_tool("meta_stats", {}))["ranking"])
            return ranking if ranking["trials"] else None

        assert (await eventually(ranked))["used"] is False
    traces = await harness.http.get(f"/api/workflows/{guessed['workflowId']}/trace")
    assert traces.json()["traces"][0]["discovery_id"]


def _value(result: CallToolResult) -> Json:
    """Return the object that a tool gave, in its text."""
    assert not result.is_error, result
    return json.loads(text_of(result))
