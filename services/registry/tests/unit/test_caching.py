"""Rules on caching, without a store."""

import pytest

from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.tool import ToolAnnotations, ToolDefinition
from pml_registry.domain.caching import uncacheable
from services.registry.tests.support.builders import record, tool

MEMOIZE = CacheSettings(policy="memoize")
READING = tool("fs:read").model_copy(update={"annotations": ToolAnnotations(read_only=True)})


def test_a_read_only_capability_may_be_cached() -> None:
    assert uncacheable(record(), MEMOIZE, [READING]) is None


@pytest.mark.parametrize(
    "known",
    [
        [tool("fs:read")],
        [READING.model_copy(update={"annotations": ToolAnnotations(idempotent=True)})],
        [],
    ],
)
def test_a_tool_with_effects_is_named_in_the_refusal(known: list[ToolDefinition]) -> None:
    why_not = uncacheable(record("fs:look"), MEMOIZE, known)
    assert why_not is not None
    assert why_not.startswith("fs:look calls fs:read, which is not marked read-only")


def test_every_such_tool_is_named() -> None:
    both = record().model_copy(update={"tools_used": ("fs:read", "fs:write", "fs:move")})
    why_not = uncacheable(both, MEMOIZE, [READING])
    assert why_not is not None
    assert "calls fs:write, fs:move, which are not" in why_not


@pytest.mark.parametrize("chosen", [{"policy": "none"}, {"policy": "persistent", "force": True}])
def test_nothing_is_refused_that_is_forced_or_not_cached(chosen: dict[str, object]) -> None:
    assert uncacheable(record(), CacheSettings.model_validate(chosen), []) is None
