"""Faults that errors carry: of tools that are away, wrong arguments, and too deep nesting."""

import pytest

from pml_common.contracts.error import ErrorKind, Fault
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_executor.domain.capabilities import CapabilityCalls
from pml_executor.domain.endings import Ending
from pml_executor.domain.events import call_ended, call_started
from pml_executor.domain.journal import Call, RunJournal
from pml_executor.domain.protocol import Entered, Failed, Threw
from services.executor.tests.support.builders import capability, make_command

NEEDS_PATH: JsonObject = {"properties": {"path": {"type": "string"}}, "required": ["path"]}
ONE = capability("a:one", "one").model_copy(update={"certain": NEEDS_PATH})
OTHER = capability("a:other", "other")
TOO_DEEP = (
    "a:one cannot be called here: capabilities call one another at most 3 deep, and this is "
    "a:one → a:one → a:one"
)


def _nesting(args: JsonObject, depth: int = 1) -> CapabilityCalls:
    """Calls of ONE inside one another, numbered from 0, with these arguments."""
    nesting = CapabilityCalls(make_command("", injected=(ONE, OTHER)), RunJournal())
    for number in range(depth):
        within = number - 1 if number else None
        entered = Entered(
            kind="entered", id=number, within=within, node=f"n{number}", capability=0, args=args
        )
        assert nesting.enter(entered, 1.0) is not None
    return nesting


def _failed(number: int, **more: object) -> Failed:
    fields = {"kind": "failed", "id": number, "call": None, "line": None, "column": None}
    return Failed.model_validate({**fields, "name": "TypeError", "message": "no path", **more})


def _threw(**more: object) -> Threw:
    return Threw.model_validate({**_failed(0).model_dump(), "kind": "threw", **more})


def _fault_of(nesting: CapabilityCalls, number: int, **more: object) -> Fault | None:
    """Let a call fail and return whose fault that is."""
    error = nesting.failure(_failed(number, **more), None, number)
    nesting.leave(number, Ending(error=error), 2.0)
    return error.fault


@pytest.mark.parametrize(
    ("args", "fault"), [({}, "caller"), ({"path": 7}, "caller"), ({"path": "/x"}, None)]
)
def test_wrong_arguments_are_the_callers_fault_and_not_that_of_the_callers_caller(
    args: JsonObject, fault: Fault | None
) -> None:
    nesting = _nesting(args)
    assert _fault_of(nesting, 0) == fault
    assert nesting.failure(_threw(capability=0), None).fault is None


def test_arguments_of_the_program_itself_are_its_callers_fault_too() -> None:
    command = make_command("").model_copy(update={"certain": NEEDS_PATH})
    assert CapabilityCalls(command, RunJournal()).failure(_threw(), None).fault == "caller"


def test_too_deep_nesting_is_the_fault_of_the_program_alone() -> None:
    nesting = _nesting({"path": "/x"}, depth=3)
    assert _fault_of(nesting, 2, message=TOO_DEEP) == "caller"
    assert _fault_of(nesting, 1, capability=2) == "caller"
    assert _fault_of(nesting, 0, capability=1) == "caller"
    assert nesting.failure(_threw(capability=0), None).fault is None


@pytest.mark.parametrize(
    "error", [{"name": "Error"}, {"call": 7}, {"message": "at most 3 deep"}], ids=str
)
def test_what_only_resembles_too_deep_nesting_is_the_capabilitys_own_fault(
    error: JsonObject,
) -> None:
    assert _fault_of(_nesting({"path": "/x"}, 3), 2, **{"message": TOO_DEEP, **error}) is None
    assert _fault_of(_nesting({"path": "/x"}, 2), 1, message=TOO_DEEP) is None


@pytest.mark.parametrize(
    ("outcome", "kind", "fault"),
    [
        (ToolOutcome(status="timeout"), "tool_error", "environment"),
        (ToolOutcome(status="tool_error", fault="environment"), "tool_error", "environment"),
        (ToolOutcome(status="tool_error", message="no such file"), "tool_error", None),
        (ToolOutcome(status="refused", fault="environment"), "denied", None),
    ],
    ids=str,
)
def test_a_calls_error_says_whether_its_tool_answered(
    outcome: ToolOutcome, kind: ErrorKind, fault: Fault | None
) -> None:
    command = make_command("")
    call = Call("n1", 0, "fs:read", {}, "", None, ended=False)
    start = call_started(command, call, ONE.capability_id, 1.0)
    end = call_ended(start, outcome, 2.0)
    assert end.error is not None
    assert (end.error.kind, end.error.fault) == (kind, fault)
    nesting = _nesting({})
    inner = nesting.failure(_failed(0, call=1), (call, end), 0)
    nesting.leave(0, Ending(error=inner), 2.0)
    assert inner.fault == (fault or "caller")  # its arguments are wrong as well
    assert nesting.failure(_threw(capability=0), None).fault == fault
