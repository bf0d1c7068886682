"""Named capabilities as MCP tools."""

from uuid import uuid4

import pytest

from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.display_names import capability_of_tool
from pml_common.contracts.registry import CapabilityChanged
from pml_gateway.domain.api.capability_tools import (
    callable_ones,
    capability_listing,
    changes_tools,
)
from services.gateway.tests.integration.mcp.served_endpoint import SORT, TIDY


def test_what_the_policy_denies_is_not_offered() -> None:
    policy = Policy(rules=(PolicyRule(pattern="cap:fs:*", verdict="deny"),))
    assert list(callable_ones([TIDY, SORT], policy)) == [SORT]


@pytest.mark.parametrize(
    ("what", "is_seen"),
    [
        ({"change": "listed"}, True),
        ({"change": "renamed"}, True),
        ({"change": "versioned"}, True),
        ({"change": "labelled"}, False),
        ({"change": "labelled", "described": True}, True),
        ({"change": "tagged"}, False),
        ({"change": "learned"}, False),
        ({"change": "learned", "health": "failing"}, True),
    ],
)
def test_clients_are_told_of_changes_that_show_in_the_tools(
    what: dict[str, object], is_seen: bool
) -> None:
    whole = {"scope": TIDY.scope, "event_id": uuid4(), "capability_id": uuid4(), "name": "fs:tidy"}
    assert changes_tools(CapabilityChanged.model_validate({**whole, **what})) == is_seen


def test_a_listing_takes_an_object_and_always_says_something() -> None:
    bare = SORT.model_copy(update={"description": "", "parameters_schema": None})
    assert capability_listing(bare) == {
        "name": "cap_my-fs_sort_all",
        "title": "my-fs:sort_all",
        "description": "The capability my-fs:sort_all.",
        "inputSchema": {"type": "object"},
    }


def test_one_that_fails_says_so_and_what_to_call_instead() -> None:
    failing = SORT.model_copy(update={"health": "failing", "last_good": "my-fs:sort_all@2"})
    assert capability_listing(failing)["description"] == (
        "FAILING: it fails more often than it succeeds. Call cap:my-fs:sort_all@2 instead, which "
        f"is healthy. {SORT.description}"
    )
    assert capability_of_tool("cap:my-fs:sort_all@2") == failing.last_good
    without = failing.model_copy(update={"last_good": None})
    assert "instead" not in str(capability_listing(without)["description"])
    degraded = SORT.model_copy(update={"health": "degraded"})
    assert str(capability_listing(degraded)["description"]).startswith("DEGRADED: ")


@pytest.mark.parametrize(
    ("tool", "capability"),
    [
        ("cap_my-fs_sort_all", "my-fs:sort_all"),
        ("cap:my-fs:sort_all", "my-fs:sort_all"),
        ("cap:fs:tidy@2", "fs:tidy@2"),
        ("cap_dns_lookup", None),
        ("cap_fs", None),
        ("fs_read", None),
    ],
)
def test_the_capability_that_a_tool_is(tool: str, capability: str | None) -> None:
    assert capability_of_tool(tool) == capability
