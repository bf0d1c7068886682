"""A run as a DAG: dependencies from the times of its calls, references from their values."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pydantic import JsonValue, TypeAdapter, ValidationError

from pml_common.contracts.base import Contract
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    StaticStructure,
    TaskNode,
)
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import TaskResult
from pml_gateway.domain.sources.dag_source import Dag, DagTask, TaskId
from pml_gateway.domain.sources.dag_values import Reference, at, path_of, text_of

_ID: Final[TypeAdapter[str]] = TypeAdapter(TaskId)
_ID_CHARACTERS: Final = re.compile(r"[^\[\]]+")


class DagView(Contract):
    """A run as a DAG: `dag` and `args` make a request for it. `left_out` are the calls that failed;
    `dag` is None if none succeeded."""

    workflow_id: UUID
    dag: Dag | None
    args: JsonObject
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class _TimedCall:
    """A call, the id of its task, and when it ended, in milliseconds."""

    id: str
    call: TaskResult

    @property
    def ended_at(self) -> float:
        return self.call.started_at + self.call.duration_ms


def view_of(
    workflow_id: UUID,
    calls: Sequence[TaskResult],
    structure: StaticStructure | None,
    args: JsonObject,
) -> DagView:
    """Build the DAG of a run's calls; `args` are the run's arguments. Calls whose times overlap are
    parallel. An argument that the program took from an earlier output, or from `args`, becomes a
    reference if exactly this value is found there."""
    ordered = sorted(calls, key=lambda call: call.started_at)
    made = [_TimedCall(_id(call, number), call) for number, call in enumerate(ordered, 1)]
    good = [one for one in made if one.call.success]
    nodes = structure.nodes if structure else ()
    arguments = {node.id: node.arguments for node in nodes if isinstance(node, TaskNode)}
    tasks = tuple(
        _task(one, good[:number], arguments.get(one.call.node_id, {}), args)
        for number, one in enumerate(good)
    )
    return DagView(
        workflow_id=workflow_id,
        dag=Dag(tasks=tasks) if tasks else None,
        args=args,
        left_out=tuple(one.id for one in made if not one.call.success),
    )


def _id(call: TaskResult, number: int) -> str:
    try:
        return _ID.validate_python(f"{call.node_id}.{call.occurrence}")
    except ValidationError:  # programs choose the names of tools in dynamic calls
        return f"task{number}"


def _task(
    made: _TimedCall, earlier: Sequence[_TimedCall], known: Mapping[str, Argument], args: JsonObject
) -> DagTask:
    ended = [one for one in earlier if one.ended_at <= made.call.started_at]
    given = {
        key: _value(value, known.get(key), ended, args) for key, value in made.call.args.items()
    }
    return DagTask(
        id=made.id,
        tool=made.call.tool,
        arguments=given,
        depends_on=tuple(one.id for one in _nearest(ended)),
    )


def _nearest(ended: Sequence[_TimedCall]) -> list[_TimedCall]:
    """Return the ended calls that no other of them waited for: the last to start, and those that
    ended after that."""
    if not ended:
        return []
    last = ended[-1]
    return [*(one for one in ended[:-1] if one.ended_at > last.call.started_at), last]


def _value(
    value: JsonValue, argument: Argument | None, ended: Sequence[_TimedCall], args: JsonObject
) -> JsonValue:
    """Return the value, or a reference to its source."""
    match argument, value:
        case ReferenceArgument(), _:
            found = _output(value, argument, ended)
        case ParameterArgument(parameter_name=name), _ if name in args:
            found = _same(Reference("INPUT", name), args[name], value)
        case ObjectArgument(fields=fields), dict():
            return {key: _value(one, fields.get(key), ended, args) for key, one in value.items()}
        case ArrayArgument(items=items), list() if len(items) == len(value):
            return [_value(one, items[n], ended, args) for n, one in enumerate(value)]
        case _:
            found = None
    return text_of(value) if found is None else str(found)


def _output(
    value: JsonValue, argument: ReferenceArgument, ended: Sequence[_TimedCall]
) -> Reference | None:
    """Return a reference to the latest output of the node that the argument names, if the value is
    there."""
    path = path_of(argument.expression)
    made = [one for one in ended if one.call.node_id == argument.node_id]
    if path is None or not made:
        return None
    try:
        there = at(made[-1].call.result, path)
    except LookupError:
        return None
    return _same(Reference("OUTPUT", made[-1].id, path), there, value)


def _same(reference: Reference, there: JsonValue, value: JsonValue) -> Reference | None:
    """Return the reference if the values are equal as JSON (1 is not True) and a reference can hold
    its name."""
    equal = json.dumps(there, sort_keys=True) == json.dumps(value, sort_keys=True)
    return reference if equal and _ID_CHARACTERS.fullmatch(reference.name) else None
