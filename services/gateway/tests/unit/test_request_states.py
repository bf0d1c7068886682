"""Sealed states of calls that are made again with the answer to a form."""

from datetime import datetime
from uuid import uuid4

import pytest
from mcp import MCPError

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.approval_form import AskedApproval
from pml_gateway.domain.api.shown_calls import ShownToApprover
from pml_gateway.entrypoints.mcp.request_states import RequestStates
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import AT, ELSEWHERE, SCOPE, later

SHOWN = ShownToApprover(digest="ab" * 32, whole=True)
ASKED = AskedApproval(uuid4(), uuid4(), SHOWN, later(60))
MIRA = Caller(SCOPE, "mira")
ARGS: JsonObject = {"a": 1, "b": [2.5]}


class Clock:
    def __init__(self) -> None:
        self.at = AT

    def now(self) -> datetime:
        return self.at


def test_a_state_says_what_it_is_about_to_any_replica_until_its_approval_ends() -> None:
    clock = Clock()
    here, there = (RequestStates(b"k" * 32, clock.now) for _ in range(2))
    sealed = here.seal(MIRA, "pml_execute", ARGS, ASKED)
    assert str(ASKED.workflow_id) not in sealed
    assert there.open(MIRA, "pml_execute", {"b": [2.5], "a": 1}, sealed) == ASKED
    clock.at = ASKED.expires_at
    with pytest.raises(MCPError, match="requestState is invalid"):
        here.open(MIRA, "pml_execute", ARGS, sealed)


@pytest.mark.parametrize(
    ("caller", "tool", "args", "secret"),
    [
        (Caller(SCOPE, "eve"), "pml_execute", ARGS, b"k" * 32),
        (Caller(ELSEWHERE, "mira"), "pml_execute", ARGS, b"k" * 32),
        (MIRA, "pml_get_task_result", ARGS, b"k" * 32),
        (MIRA, "pml_execute", {"a": 1, "b": [2.6]}, b"k" * 32),
        (MIRA, "pml_execute", ARGS, b"j" * 32),
    ],
    ids=["credential", "scope", "tool", "arguments", "key"],
)
def test_a_state_belongs_to_one_call(
    caller: Caller, tool: str, args: JsonObject, secret: bytes
) -> None:
    clock = Clock()
    sealed = RequestStates(b"k" * 32, clock.now).seal(MIRA, "pml_execute", ARGS, ASKED)
    with pytest.raises(MCPError, match="requestState is invalid"):
        RequestStates(secret, clock.now).open(caller, tool, args, sealed)


def test_an_altered_state_is_refused() -> None:
    states = RequestStates(b"k" * 32, Clock().now)
    sealed = states.seal(MIRA, "pml_execute", ARGS, ASKED)
    altered = [
        sealed[:at] + ("A" if sealed[at] != "A" else "B") + sealed[at + 1 :]
        for at in range(0, len(sealed), 7)
    ]
    for each in (*altered, "", "v1.", sealed[:-4], f"{sealed}AAAA", "\ud800"):
        with pytest.raises(MCPError, match="requestState is invalid"):
            states.open(MIRA, "pml_execute", ARGS, each)
