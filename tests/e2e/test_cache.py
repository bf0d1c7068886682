"""Cached results of capabilities, on the whole stack."""

import json
from collections.abc import Callable, Generator
from typing import Any

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

Answer = dict[str, Any]
# Of shapes that no other suite on this stack has: equal code is the same capability.
LOOK = (
    "const seen = await mcp.counting.peek({ path: args.path });\nreturn { to_cache: seen.exists };"
)
STEP = "return { to_cache: await mcp.counting.step({ n: args.n }) };"
NESTING = "return [await capabilities.cache_look({ path: args.path }), args.why];"


Hold = Callable[..., None]


@pytest.fixture
def hold(harness: StackHarness) -> Generator[Hold]:
    """Replace the rules of the policy file, each a pattern and a verdict; removed after the
    test."""

    def write(*rules: tuple[str, str]) -> None:
        document = {"rules": [{"pattern": one, "verdict": verdict} for one, verdict in rules]}
        text = json.dumps(document)
        (harness.stack.home / "policy.json").write_text(text, encoding="utf-8")

    yield write
    write()


async def learn(harness: StackHarness, name: str, code: str, **args: object) -> Answer:
    """Run a capability and wait until the run is learned."""
    done = await harness.execute(code, name=name, args=args)
    assert done["status"] == "success", done

    async def learned() -> Answer | None:
        found = await harness.http.get(f"/api/capabilities/{name}")
        return found.json() if found.status_code == 200 and found.json()["usage"]["count"] else None

    return await eventually(learned)


async def choose(harness: StackHarness, name: str, **cache: object) -> Answer:
    answer = await harness.http.patch(f"/api/capabilities/{name}", json={"cache": cache})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def call(harness: StackHarness, name: str, **args: object) -> Answer:
    answer = await harness.http.post("/api/execute", json={"capability": name, "args": args})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def used(harness: StackHarness, name: str, times: int) -> bool:
    """Whether this number of runs of a capability is learned eventually."""

    async def so_many() -> bool:
        found = await harness.http.get(f"/api/capabilities/{name}")
        return found.json()["usage"]["count"] == times

    return await eventually(so_many)


@pytest.mark.parametrize("policy", ["memoize", "persistent"])
async def test_a_cached_result_is_returned_again_and_learned_once(
    harness: StackHarness, policy: str
) -> None:
    name = f"cache:{policy}"
    before = await learn(harness, name, LOOK.replace("to_cache", policy), path="/")
    assert (before["cache"]["policy"], before["usage"]["count"]) == ("none", 1)
    chosen = await choose(harness, name, policy=policy, ttl_s=600)
    assert chosen["cache"] == {"policy": policy, "ttl_s": 600, "force": False, "revision": 1}
    first = await call(harness, name, path="/")
    assert first["status"] == "success"
    assert "cached" not in first
    assert await call(harness, name, path="/") == {**first, "cached": True}
    assert await used(harness, name, 2)
    traces = (await harness.http.get(f"/api/workflows/{first['workflow_id']}/trace")).json()
    assert traces["total"] == 1
    other = await call(harness, name, path="/nowhere")
    assert other["workflow_id"] != first["workflow_id"]
    assert await used(harness, name, 3)

    def counted() -> bool:
        counts = harness.telemetry.counts
        return all(counts.get(("pml.cache.lookups", outcome), 0) for outcome in ("hit", "miss"))

    def returned() -> bool:
        spans = harness.telemetry.of_workflow(first["workflow_id"])
        outcomes = [span.attributes.get("pml.cache.outcome") for span in spans]
        return {"miss", "hit"} <= set(outcomes)

    assert await eventually(returned)
    assert await eventually(counted)


async def test_a_capability_with_effects_is_cached_only_with_force_and_runs_once(
    harness: StackHarness, hold: Hold
) -> None:
    await learn(harness, "cache:step", STEP, n=8100)
    body = {"cache": {"policy": "memoize"}}
    refused = await harness.http.patch("/api/capabilities/cache:step", json=body)
    assert refused.status_code == 409
    assert "counting:step" in refused.json()["error"]["message"]
    await choose(harness, "cache:step", policy="memoize", force=True)
    asked = await call(harness, "cache:step", n=8101)
    assert asked["status"] == "approval_required"
    await harness.approve(asked["workflow_id"])
    await harness.end_of(asked["workflow_id"])
    assert (await call(harness, "cache:step", n=8101))["status"] == "approval_required"

    hold(("counting:step", "allow"))
    first = await call(harness, "cache:step", n=8102)
    assert first["status"] == "success", first
    again = await call(harness, "cache:step", n=8102)
    assert again == {**first, "cached": True}
    assert (harness.steps()[8101], harness.steps()[8102]) == (1, 1)


async def test_a_cached_result_is_withheld_while_it_is_denied(
    harness: StackHarness, hold: Hold
) -> None:
    await learn(harness, "cache:look", LOOK, path="/")
    await choose(harness, "cache:look", policy="persistent")
    first = await call(harness, "cache:look", path="/")
    for pattern in ("counting:peek", "cap:cache:look"):
        hold((pattern, "deny"))
        denied = await call(harness, "cache:look", path="/")
        assert (denied["status"], denied["error"]["kind"]) == ("error", "denied")
    hold()
    assert await call(harness, "cache:look", path="/") == {**first, "cached": True}


async def test_a_call_inside_a_run_runs_and_its_caller_may_be_cached(harness: StackHarness) -> None:
    await learn(harness, "cache:look", LOOK, path="/")
    await choose(harness, "cache:look", policy="memoize")
    await call(harness, "cache:look", path="/")
    await learn(harness, "cache:nesting", NESTING, path="/", why="first")
    await choose(harness, "cache:nesting", policy="memoize")
    first = await call(harness, "cache:nesting", path="/", why="second")
    assert (first["status"], first["result"]) == ("success", [{"to_cache": True}, "second"])
    assert first["calls"]["by_tool"] == {"counting:peek": 1}
    again = await call(harness, "cache:nesting", path="/", why="second")
    assert again == {**first, "cached": True}
