"""Compiles a DAG of tool calls to a program, which then runs like any other.

Tasks that depend on nothing are the first layer, those that depend on them alone the second, and so
on. The calls of a layer are made in parallel.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.sources.dag_values import (
    FORBIDDEN,
    Reference,
    Unreadable,
    expression,
    references,
    text_of,
)

MOST_TASKS: Final = 1_000

TaskId = Annotated[str, StringConstraints(pattern=r"^[^\[\]\s]{1,300}$")]
ToolId = Annotated[str, StringConstraints(pattern=r"^[^:]+:.+$", max_length=256)]
"""`server:tool`."""


class _Source(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class DagTask(_Source):
    """One call. Strings in `arguments` may be references: see `dag_values`."""

    id: TaskId = Field(description="Names the task in this DAG.")
    tool: ToolId = Field(description="server:tool")
    arguments: JsonObject = Field(
        default_factory=dict,
        description="A string that is `$OUTPUT[id]` or `$INPUT[name]`, optionally followed by a "
        "path as `.items[0]`, stands for a task's output or an argument in args; text that begins "
        "like that, or with `$$`, is escaped by one more `$`.",
    )
    depends_on: tuple[TaskId, ...] = Field(
        default=(),
        validation_alias=AliasChoices("depends_on", "dependsOn"),
        description="Ids of the tasks that must end before.",
    )


class Dag(_Source):
    """Calls and their dependencies."""

    tasks: Annotated[tuple[DagTask, ...], Field(min_length=1)]


class ToolSource(_Source):
    """One call of one tool; the caller's arguments override `default_args`."""

    tool_id: ToolId = Field(
        validation_alias=AliasChoices("tool_id", "toolId"), description="server:tool"
    )
    default_args: JsonObject = Field(
        default_factory=dict, validation_alias=AliasChoices("default_args", "defaultArgs")
    )


def program_of_tool(source: ToolSource) -> str:
    """Return the program that calls a tool. Raises InvalidRequest."""
    try:
        defaults = expression(text_of(source.default_args), str)
    except Unreadable as error:
        raise InvalidRequest("tool", f"cannot be used: {error}") from None
    given = f"{{ ...{defaults}, ...args }}" if source.default_args else "args"
    return f"return await mcp.call({json.dumps(source.tool_id)}, {given});\n"


def program_of_dag(dag: Dag) -> str:
    """Return the program that makes the calls and returns every task's output by its id. Raises
    InvalidRequest that names the task and the reason."""
    layers = layers_of(dag)
    ordered = [task for layer in layers for task in layer]
    names = {task.id: f"t{number}" for number, task in enumerate(ordered, 1)}
    calls = {task.id: _call(task, names) for task in ordered}
    steps = [_step([(names[task.id], calls[task.id]) for task in layer]) for layer in layers]
    outputs = ", ".join(f"{json.dumps(task.id)}: {names[task.id]}" for task in dag.tasks)
    return "\n".join([*steps, f"return {{ {outputs} }};", ""])


def layers_of(dag: Dag) -> list[list[DagTask]]:
    """Return the tasks, each in the first layer after all it depends on; in the given order within
    a layer. Raises InvalidRequest."""
    _check_ids(dag)
    left, layers = {task.id: task for task in dag.tasks}, list[list[DagTask]]()
    while left:
        ready = [task for task in left.values() if not any(one in left for one in task.depends_on)]
        if not ready:
            raise _unusable(f"its tasks wait for each other: {_cycle(left)}")
        layers.append(ready)
        for task in ready:
            del left[task.id]
    _check_references(layers)
    return layers


def _check_ids(dag: Dag) -> None:
    if len(dag.tasks) > MOST_TASKS:
        raise _unusable(f"it has {len(dag.tasks):,} tasks, more than {MOST_TASKS:,}")
    known: set[str] = set()
    for task in dag.tasks:
        if task.id in known:
            raise _unusable(f"there are two tasks {task.id}")
        if task.id == FORBIDDEN:
            raise _unusable(f"no task may be called {FORBIDDEN}")
        known.add(task.id)
    for task in dag.tasks:
        for one in task.depends_on:
            if one not in known:
                raise _unusable(f"task {task.id} depends on {one}, and there is no such task")


def _check_references(layers: Sequence[Sequence[DagTask]]) -> None:
    """Check that each task refers only to tasks that it depends on, directly or not."""
    tasks = [task for layer in layers for task in layer]
    bit = {task.id: 1 << number for number, task in enumerate(tasks)}
    before: dict[str, int] = {}
    for task in tasks:
        before[task.id] = 0
        for one in task.depends_on:
            before[task.id] |= before[one] | bit[one]
        for found in _references(task):
            if found.name not in bit:
                raise _unusable(f"task {task.id} refers to {found}, and there is no such task")
            if not before[task.id] & bit[found.name]:
                raise _unusable(f"task {task.id} refers to {found} and does not depend on it")


def _references(task: DagTask) -> list[Reference]:
    try:
        return [found for found in references(task.arguments) if found.kind == "OUTPUT"]
    except Unreadable as error:
        raise _unusable(f"task {task.id}: {error}") from None


def _cycle(left: Mapping[str, DagTask]) -> str:
    """Describe one cycle among tasks of which each waits for another."""
    path: list[str] = [next(iter(left))]
    while path.count(path[-1]) == 1:
        path.append(next(one for one in left[path[-1]].depends_on if one in left))
    return " waits for ".join(path[path.index(path[-1]) :])


def _call(task: DagTask, names: Mapping[str, str]) -> str:
    def named(reference: Reference) -> str:
        if reference.kind == "OUTPUT":
            return names[reference.name]
        return f"args[{json.dumps(reference.name)}]"

    try:
        return f"mcp.call({json.dumps(task.tool)}, {expression(task.arguments, named)})"
    except Unreadable as error:
        raise _unusable(f"task {task.id}: {error}") from None


def _step(calls: Sequence[tuple[str, str]]) -> str:
    if len(calls) == 1:
        ((name, call),) = calls
        return f"const {name} = await {call};"
    names = ", ".join(name for name, _ in calls)
    made = "".join(f"  {call},\n" for _, call in calls)
    return f"const [{names}] = await Promise.all([\n{made}]);"


def _unusable(why: str) -> InvalidRequest:
    return InvalidRequest("dag", f"cannot be run: {why}")
