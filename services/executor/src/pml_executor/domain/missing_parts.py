"""The end of a program whose value is a part that the result of its tool does not have.

Its result would be null, as that of a program that returns nothing. Where it could only read, that
is its error, and it can be sent again. Where it may have changed something, it has succeeded, and
says that nothing is to be repeated.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.tool import ENVELOPE
from pml_common.contracts.trace import ToolEnd, ToolStart, TraceEvent
from pml_executor.domain.endings import Ending
from pml_executor.domain.instrumented import Instrumented
from pml_executor.domain.protocol import Returned, ReturnedPart, Step, Threw

_MOST_KEYS: Final = 20
_MOST_ITEMS: Final = 100
"""Items of a list whose keys are looked at."""

_MOST_CHARACTERS: Final = 60
_MOST_OF_PATH: Final = 200
_READ_OF_UNDEFINED: Final = "Cannot read properties of undefined"
_PLAIN: Final = (
    " PML gives what a tool returned as it is: a text is a text, and there is no content, data, "
    "result or structuredContent around a value."
)


class _Missing(NamedTuple):
    """A part that is not there: `steps` lead to the first that is missing, from `value`, which is
    the deepest that is there, by the last of them. `end` is the call that gave the result."""

    part: ReturnedPart
    end: ToolEnd
    steps: tuple[Step, ...]
    value: JsonValue


def ending_of_return(
    command: RunWorkflow, returned: Returned, entries: Sequence[TraceEvent]
) -> Ending:
    """Return the end of a program that returned; `entries` are its journal up to then, from which
    every executor tells the same."""
    missing = None if returned.part is None else _missing(returned.part, entries)
    if missing is None:
        return Ending(result=returned.value, notices=returned.lost)
    told = _told(missing)
    if not _only_read(command, entries):
        return Ending(notices=(_notice(command, missing, told), *returned.lost), void=True)
    message = f"{told} Where it may be missing, write {_short(missing.part.text)} ?? null."
    at = missing.part
    error = WorkflowError(
        kind="user_error", message=message, node_id=at.node, line=at.line, column=at.column
    )
    return Ending(error=error)


def explained(
    command: RunWorkflow, threw: Threw, error: WorkflowError, entries: Sequence[TraceEvent]
) -> WorkflowError:
    """Return the error of a program that threw, with what a tool's result has instead where it read
    a part of a part that is missing, to return it: `res.content[0].text`."""
    if threw.name != "TypeError" or not threw.message.startswith(_READ_OF_UNDEFINED):
        return error
    part = _part_at(command, threw)
    missing = None if part is None else _missing(part, entries)
    if part is None or missing is None:
        return error
    message = f"{error.message}: {_told(missing)}"
    return error.model_copy(update={"message": message, "node_id": part.node})


def _part_at(command: RunWorkflow, threw: Threw) -> ReturnedPart | None:
    """Return the part that the program was about to return where it threw."""
    if threw.line is None or threw.column is None or threw.module is not None:
        return None
    program = Instrumented.of(command)
    opening = program.insertion_around("returned", program.offset(threw.line, threw.column))
    if opening is None:
        return None
    try:
        given = json.loads(f"[{opening.partition('(')[2].rstrip(', ')}]")
        names = ("node", "path", "text", "line", "column")
        return ReturnedPart.model_validate(dict(zip(names, given, strict=True)))
    except ValueError:  # not what the analysis inserts
        return None


def _missing(part: ReturnedPart, entries: Sequence[TraceEvent]) -> _Missing | None:
    """Return what no result of the node has; None where one has it, or may have it: null stands for
    anything, a list may be shorter, and a mock is not the tool's result."""
    calls = (entry for entry in entries if isinstance(entry, ToolEnd))
    ends = [end for end in calls if end.success and end.node_id == part.node]
    if any(end.mocked for end in ends):
        return None
    found = [end.result for end in ends]
    for depth, step in enumerate(part.path, start=1):
        if any(_is_open(value, step) for value in found):
            return None
        inside = [each for value in found for each in _at(value, step)]
        if not inside:
            return _Missing(part, ends[-1], part.path[:depth], found[-1]) if found else None
        found = inside
    return None


def _is_open(value: JsonValue, step: Step) -> bool:
    """Whether a part of the value is missing as it may be at any time: null has none, and a list
    or a text none at that place."""
    if isinstance(value, list | str):
        return not (isinstance(step, str) or value[step or 0 :])
    return value is None


def _at(value: JsonValue, step: Step) -> Sequence[JsonValue]:
    """Return what a value has at a step: all elements of a list where it is not known which."""
    match value:
        case dict() if str(step) in value:
            return [value[str(step)]]
        case list() if step is None:
            return value
        case list() | str() if isinstance(step, int):
            return value[step : step + 1]
        case _:
            return []


def _only_read(command: RunWorkflow, entries: Sequence[TraceEvent]) -> bool:
    """Whether no call of the run can have changed anything: each reads, or was mocked."""
    harmless = {*command.read_only_tools, *command.mocks}
    return all(entry.tool in harmless for entry in entries if isinstance(entry, ToolStart))


def _notice(command: RunWorkflow, missing: _Missing, told: str) -> str:
    end, workflow = missing.end, command.workflow_id
    task = f"{end.node_id}.{end.occurrence}"
    return (
        f"Do not repeat the program: its calls were made. Its result is null: {told} "
        f'pml_get_task_result with {{"workflow_id": "{workflow}", "task_id": "{task}"}} returns '
        f"the result of the call, GET /api/workflows/{workflow}/trace and pml trace {workflow} "
        "those of all. The program is not offered to others, and gets no name."
    )


def _told(missing: _Missing) -> str:
    part, steps, value = missing.part, missing.steps, missing.value
    what = f"the result of {missing.end.tool} ({part.node})"
    within = f"its {_dotted(steps[:-1])}" if len(steps) > 1 else "it"
    is_envelope = len(steps) == 1 and steps[0] in ENVELOPE
    return (
        f"the program returned {_short(part.text)} (line {part.line}), and {what} has no "
        f"{_dotted(steps)}: {within} is {_form(value)}.{_advice(value)}"
        f"{_PLAIN if is_envelope else ''}"
    )


def _form(value: JsonValue) -> str:
    """Describe a value by its type and its keys, without its contents."""
    match value:
        case dict() if value:
            return f"an object with {_keys(value)}"
        case list() if value:
            return f"a list of {len(value):,}{_items(value)}"
        case _:
            return _type(value)


def _items(items: Sequence[JsonValue]) -> str:
    objects = [item for item in items[:_MOST_ITEMS] if isinstance(item, dict)]
    keys = {name: value for item in reversed(objects) for name, value in item.items()}
    if keys:
        return f", with objects that have {_keys(keys)}"
    return f", the first is {_type(items[0])}"


def _keys(of: Mapping[str, JsonValue]) -> str:
    told = [f"{_short(name)} ({_type(value)})" for name, value in [*of.items()][:_MOST_KEYS]]
    others = len(of) - len(told)
    return ", ".join([*told, *([f"{others:,} other keys"] if others else [])])


def _type(value: JsonValue) -> str:
    match value:
        case bool():
            return "a boolean"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return f"a list of {len(value):,}" if value else "an empty list"
        case dict():
            return "an object" if value else "an empty object"
        case _:
            return "null"


def _advice(value: JsonValue) -> str:
    match value:
        case str():
            return " Return it itself; JSON.parse it first where it is JSON and a part is wanted."
        case list():
            return " Return it itself, or take an item of it first, as [0]."
        case _:
            return " Return it itself, or a part that it has."


def _dotted(path: Sequence[Step]) -> str:
    """Format a path as a program writes it: `.user.name`, `[0].id`, `[].id` for any element."""
    steps = (f".{_short(each)}" if isinstance(each, str) else _index(each) for each in path)
    return _short("".join(steps), _MOST_OF_PATH)


def _index(step: int | None) -> str:
    return "[]" if step is None else f"[{step}]"


def _short(text: str, most: int = _MOST_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
