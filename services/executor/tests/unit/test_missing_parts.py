"""Programs whose value is a part that a tool's result does not have."""

import json
from collections.abc import Sequence
from uuid import uuid4

import pytest
from pydantic import JsonValue

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.trace import ToolEnd, ToolStart, TraceEvent
from pml_executor.domain.endings import Ending
from pml_executor.domain.events import run_ended, run_started
from pml_executor.domain.finished import finished
from pml_executor.domain.frames import Frame
from pml_executor.domain.missing_parts import ending_of_return, explained
from pml_executor.domain.protocol import Returned, ReturnedPart, Step, Threw, parse_frame
from services.executor.tests.support.builders import make_command

READS = make_command("", read_only_tools=("fs:read",))
ANYTHING = make_command("")
FAILED = WorkflowError(kind="tool_error", message="no")


def called(
    result: JsonValue,
    node: str = "n1",
    tool: str = "fs:read",
    *,
    times: int = 0,
    success: bool = True,
    mocked: bool = False,
) -> list[TraceEvent]:
    """Build the journal's entries of one call."""
    trace = uuid4()
    start = ToolStart(
        trace_id=trace,
        parent_trace_id=uuid4(),
        node_id=node,
        occurrence=times,
        ts=1.0,
        tool=tool,
        args={},
        args_hash="",
    )
    end = ToolEnd(
        trace_id=trace,
        parent_trace_id=start.parent_trace_id,
        node_id=node,
        occurrence=times,
        ts=2.0,
        tool=tool,
        success=success,
        duration_ms=1.0,
        result=result if success else None,
        error=None if success else FAILED,
        mocked=mocked,
    )
    return [start, end]


def returned(*path: Step, text: str = "r.part") -> Returned:
    part = ReturnedPart(node="n1", path=path, text=text, line=2, column=8)
    return Returned(kind="returned", value=None, part=part)


def error(entries: Sequence[TraceEvent], *path: Step, command: RunWorkflow = READS) -> str:
    """Return what the error of the run says."""
    ending = ending_of_return(command, returned(*path), entries)
    assert ending.error is not None, ending
    assert (ending.error.kind, ending.void) == ("user_error", False)
    return ending.error.message


def is_as_ever(entries: Sequence[TraceEvent], *path: Step, command: RunWorkflow = READS) -> bool:
    return ending_of_return(command, returned(*path), entries) == Ending()


def test_a_value_without_a_missing_part_is_the_result() -> None:
    value = Returned(kind="returned", value=1, lost=("result was NaN: it became null",))
    assert ending_of_return(READS, value, called("text")) == Ending(1, notices=value.lost)


def test_the_error_of_a_program_that_only_read_says_what_where_and_what_to_do() -> None:
    part = returned("content", 0, "text", text="res.content?.[0]?.text")
    ending = ending_of_return(READS, part, called("the secret text"))
    assert ending.error == WorkflowError(
        kind="user_error",
        message="the program returned res.content?.[0]?.text (line 2), and the result of fs:read "
        "(n1) has no .content: it is text. Return it itself; JSON.parse it first where it is JSON "
        "and a part is wanted. PML gives what a tool returned as it is: a text is a text, and "
        "there is no content, data, result or structuredContent around a value. Where it may be "
        "missing, write res.content?.[0]?.text ?? null.",
        node_id="n1",
        line=2,
        column=8,
    )


FORMS: dict[str, tuple[JsonValue, tuple[Step, ...], str]] = {
    "an object": (
        {"id": 7, "name": "secret", "ok": True, "none": None, "tags": ["s"], "of": {"s": 1}},
        ("title",),
        "has no .title: it is an object with id (a number), name (text), ok (a boolean), none "
        "(null), tags (a list of 1), of (an object). Return it itself, or a part that it has.",
    ),
    "a deeper object": (
        {"user": {"name": "secret", "list": [], "of": {}}},
        ("user", "mail", "host"),
        "has no .user.mail: its .user is an object with name (text), list (an empty list), of (an "
        "empty object).",
    ),
    "an empty object": ({}, ("a",), "has no .a: it is an empty object."),
    "an empty list": ([], ("a",), "has no .a: it is an empty list."),
    "a list of objects": (
        [1, {"id": 7}, {"id": "secret", "name": "secret"}],
        ("items",),
        "has no .items: it is a list of 3, with objects that have id (a number), name (text). "
        "Return it itself, or take an item of it first, as [0].",
    ),
    "a list of texts": (
        [*(["secret"] * 1200)],
        ("items",),
        "has no .items: it is a list of 1,200, the first is text.",
    ),
    "an item of a list": ([{"id": 7}], (0, "nam"), "has no [0].nam: its [0] is an object with id"),
    "an item by a key": ({"0": {"a": 1}}, (0, "b"), "has no [0].b: its [0] is an object with a"),
    "all items of a list": (
        [{"id": 7}, {"id": 8}],
        (None, "nam"),
        "has no [].nam: its [] is an object with id (a number).",
    ),
    "a character of a text": ("abc", (1, "b"), "has no [1].b: its [1] is text."),
    "a number": (3, ("a",), "has no .a: it is a number."),
}


@pytest.mark.parametrize(("result", "path", "words"), FORMS.values(), ids=FORMS)
def test_what_is_there_is_told_by_keys_and_types_without_data(
    result: JsonValue, path: tuple[Step, ...], words: str
) -> None:
    told = error(called(result), *path)
    assert words in told
    assert "secret" not in told


def test_only_the_keys_of_other_hosts_are_explained() -> None:
    for key in ("content", "data", "result", "structuredContent", "text"):
        assert "PML gives what a tool returned as it is" in error(called({}), key)
    assert "PML gives" not in error(called({}), "title")
    assert "PML gives" not in error(called({"a": {}}), "a", "content")


def test_what_is_told_is_bounded() -> None:
    wide: JsonValue = {f"{'k' * 100}{n}": n for n in range(2_000)}
    deep = called({"x" * 500: {"y" * 500: {"z" * 500: wide}}})
    told = error(deep, "x" * 500, "y" * 500, "z" * 500, "w" * 500)
    assert "1,980 other keys" in told
    assert len(told) < 3_000


OPEN: dict[str, tuple[JsonValue, tuple[Step, ...]]] = {
    "a part that is null": ({"a": None}, ("a",)),
    "a part of null": (None, ("a",)),
    "a part of a part that is null": ({"a": None}, ("a", "b")),
    "a part that is there": ({"a": {"b": 1}}, ("a", "b")),
    "an item beyond the end of a list": ([1], (1,)),
    "the items of an empty list": ([], (None, "a")),
    "the first character of an empty text": ("", (0,)),
    "a part that one of the items has": ([{}, {"a": 1}], (None, "a")),
}


@pytest.mark.parametrize(("result", "path"), OPEN.values(), ids=OPEN)
def test_what_is_there_or_may_be_missing_is_no_error(
    result: JsonValue, path: tuple[Step, ...]
) -> None:
    assert is_as_ever(called(result), *path)


def test_a_call_that_has_no_result_gives_no_error() -> None:
    assert is_as_ever([], "a")
    assert is_as_ever(called({}, "n2"), "a")
    assert is_as_ever(called({}, success=False), "a")
    assert is_as_ever(called({}, mocked=True), "a")


def test_no_result_of_a_node_may_have_the_part() -> None:
    assert is_as_ever([*called({"a": 1}), *called({}, times=1)], "a")
    told = error([*called({"b": 1}), *called({"c": 1}, times=1)], "a")
    assert "it is an object with c (a number)" in told


def test_calls_that_may_have_changed_something_are_not_to_be_repeated() -> None:
    entries = [*called("text"), *called({}, "n2", "fs:write")]
    ending = ending_of_return(READS, returned("content"), entries)
    assert (ending.error, ending.result, ending.void) == (None, None, True)
    (notice,) = ending.notices
    assert notice.startswith(
        "Do not repeat the program: its calls were made. Its result is null: the program returned "
        "r.part (line 2), and the result of fs:read (n1) has no .content: it is text."
    )
    ids = f'{{"workflow_id": "{READS.workflow_id}", "task_id": "n1.0"}}'
    assert f"pml_get_task_result with {ids} returns the result of the call" in notice
    assert "The program is not offered to others, and gets no name." in notice


def test_a_tool_that_is_not_known_to_only_read_may_have_changed_something() -> None:
    assert ending_of_return(ANYTHING, returned("a"), called({})).void


def test_a_call_without_its_end_counts() -> None:
    start, _ = called({}, "n2", "fs:write")
    assert ending_of_return(READS, returned("a"), [*called({}), start]).void


def test_in_a_dry_run_mocked_calls_change_nothing() -> None:
    command = READS.model_copy(update={"mocks": {"fs:write": ({"success": True},)}})
    entries = [*called({}), *called({"success": True}, "n2", "fs:write", mocked=True)]
    assert "has no .a" in error(entries, "a", command=command)


def test_the_end_of_the_run_says_that_it_is_void_and_the_notice_first() -> None:
    ending = ending_of_return(ANYTHING, returned("a"), called({}))
    entries = [
        run_started(ANYTHING, 1.0),
        *called({}),
        run_ended(ANYTHING, ending, 1.0, 4.0),
    ]
    fact = finished(ANYTHING, entries)
    assert (fact.success, fact.result, fact.void) == (True, None, True)
    assert fact.notices[0].startswith("Do not repeat the program")
    assert not finished(ANYTHING, [entries[0], run_ended(ANYTHING, Ending(1), 1.0, 4.0)]).void


def test_the_sandbox_tells_the_part() -> None:
    part = {"node": "n1", "path": ["a", 0, None, "0"], "text": "r", "line": 1, "column": 2}
    message = {"kind": "returned", "value": None, "part": part}
    (told,) = parse_frame(Frame("program", json.dumps(message).encode()))
    assert isinstance(told, Returned)
    assert told.part is not None
    assert told.part.path == ("a", 0, None, "0")


THROWS = make_command(
    'const res = 1;\nreturn «__pml_returned("n1", ["content", 0], "res.content[0]", 2, 8, »'
    "res.content[0]«)»;"
)
TYPE_ERROR = WorkflowError(kind="user_error", message="TypeError: Cannot read …", line=2, column=19)


def threw(**changed: object) -> Threw:
    known: dict[str, object] = {
        "kind": "threw",
        "call": None,
        "name": "TypeError",
        "message": "Cannot read properties of undefined (reading '0')",
        "line": 2,
        "column": 1,
    }
    return Threw.model_validate(known | changed)


def test_what_a_program_threw_at_a_missing_part_is_explained() -> None:
    line = THROWS.instrumented.splitlines()[1]
    at = threw(column=line.rindex("[0]") + 1)
    error = explained(THROWS, at, TYPE_ERROR, called("secret"))
    assert error.message.startswith(
        "TypeError: Cannot read …: the program returned res.content[0] (line 2), and the result of "
        "fs:read (n1) has no .content: it is text. Return it itself"
    )
    assert "secret" not in error.message
    assert (error.kind, error.node_id, error.line, error.column) == ("user_error", "n1", 2, 19)


def test_other_errors_are_as_the_program_threw_them() -> None:
    line = THROWS.instrumented.splitlines()[1]
    at = line.rindex("[0]") + 1
    others = [
        threw(column=at, name="RangeError"),
        threw(column=at, message="Cannot read properties of null (reading '0')"),
        threw(column=at, module=0),
        threw(line=None, column=None),
        threw(line=1, column=3),
        threw(line=9, column=3),
    ]
    for each in others:
        assert explained(THROWS, each, TYPE_ERROR, called("text")) is TYPE_ERROR
    there = called({"content": None})
    assert explained(THROWS, threw(column=at), TYPE_ERROR, there) is TYPE_ERROR


@pytest.mark.parametrize("given", ['"n1"', "'n1'", '"n1", [], 1, 2, 3', '"n1", [], "r", 2, 8, 9'])
def test_what_the_analysis_never_inserts_explains_nothing(given: str) -> None:
    command = make_command(f"return «__pml_returned({given}, »res.content[0]«)»;")
    at = threw(line=1, column=command.instrumented.rindex("[0]") + 1)
    assert explained(command, at, TYPE_ERROR, called("text")) is TYPE_ERROR
