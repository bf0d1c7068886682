"""REST speaks snake_case; what MCP clients write in camelCase is understood, too."""

import re
from collections.abc import Iterator
from typing import Any, cast

import pytest

from services.gateway.tests.support.harness import Json, Worlds

pytestmark = pytest.mark.integration

_CAMEL = re.compile("[a-z][A-Z]")


async def test_no_described_field_or_parameter_is_in_camel_case(world: Worlds) -> None:
    async with world(peers_there=False) as w:
        described = (await w.http.get("/openapi.json")).json()
    found = list(_names(described))
    assert len(found) > 100
    assert [name for name in found if _CAMEL.search(name)] == []


def _names(described: object) -> Iterator[str]:
    """Yield the names of properties and of parameters in a description."""
    if isinstance(described, list):
        for each in cast(list[object], described):
            yield from _names(each)
    if isinstance(described, dict):
        known = cast(dict[str, Any], described)
        if isinstance(known.get("properties"), dict):
            yield from known["properties"]
        if known.get("in") in ("query", "path"):
            yield known["name"]
        for each in known.values():
            yield from _names(each)


REQUESTS: list[Json] = [
    {"code": "return 1;", "dry_run": True, "dry_run_mocks": {"fs:read": 1}},
    {"code": "return 1;", "dryRun": True, "dryRunMocks": {"fs:read": 1}},
    {"tool": {"tool_id": "fs:read", "default_args": {"path": "/a"}}},
    {"tool": {"toolId": "fs:read", "defaultArgs": {"path": "/a"}}},
    {"dag": {"tasks": [{"id": "a", "tool": "fs:read", "depends_on": []}]}},
    {"dag": {"tasks": [{"id": "a", "tool": "fs:read", "dependsOn": []}]}},
]


@pytest.mark.parametrize("body", REQUESTS)
async def test_a_request_may_be_in_either_case_and_its_answer_is_in_snake_case(
    body: Json, world: Worlds
) -> None:
    async with world() as w:
        answer = await w.http.post("/api/execute", json=body)
        assert answer.status_code == 200, answer.text
        assert {"workflow_id", "capability_id"} <= set(answer.json())
        assert not any(_CAMEL.search(name) for name in answer.json())
