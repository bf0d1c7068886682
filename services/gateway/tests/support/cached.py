"""Capability the capability `fs:look`, which only reads so that the gateway may be cached."""

import json

from pml_gateway.application.cached_results import ResultCache
from pml_gateway.application.execute_by_name import CapabilityExecution
from pml_gateway.domain.api.api import ExecuteRequest
from services.gateway.tests.support.builders import workflow
from services.gateway.tests.support.fakes import record
from services.gateway.tests.support.harness import Json, World

MEMOIZE: Json = {"policy": "memoize", "ttl_s": 600}
PERSISTENT: Json = {"policy": "persistent"}


def learn(w: World, code: str = "return 'known';", **changed: object) -> None:
    """Set the present record of `fs:look`."""
    known = record(workflow(ExecuteRequest(code=code)), "fs:look").model_copy(update=changed)
    w.peers.names |= {"fs:look": known, str(known.capability_id): known}


async def choose(w: World, cache: Json) -> Json:
    """Change its cache policy and expect 200."""
    answer = await w.http.patch("/api/capabilities/fs:look", json={"cache": cache})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def look(w: World, path: str = "/a", **more: object) -> Json:
    """Call it by name and expect 200."""
    body = {"capability": "fs:look", "args": {"path": path}, **more}
    answer = await w.http.post("/api/execute", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def with_cache(w: World, cache: ResultCache) -> CapabilityExecution:
    """Build the execution of capabilities by name on another cache."""
    return CapabilityExecution(w.parts.workflows, w.parts.programs, cache, w.parts.bus)


def allow(w: World, *rules: tuple[str, str]) -> None:
    """Write the policy file: patterns and verdicts."""
    file = w.parts.settings.gateway_policy_file
    assert file is not None
    document = {"rules": [{"pattern": one, "verdict": verdict} for one, verdict in rules]}
    file.write_text(json.dumps(document), encoding="utf-8")
