"""Data sets of tools and annotated intents."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from pml_common.contracts.base import Contract
from pml_common.contracts.fault_words import faults_of
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_registry.domain.tool_catalog import is_tool_id

T = TypeVar("T")

_NUMBER = re.compile(r"^\s*\d+\.\s*")
_OUTSIDE_IDS = re.compile(r"[\s:]+")
_MAX_INTENT = 4000
"""Characters of an intent that discovery accepts."""


class DatasetError(Exception):
    """A data set that cannot be read: the file, the place in it, and what to do."""


@dataclass(frozen=True)
class Task:
    """An intent and the ids of the tools that serve it."""

    query: str
    relevant: frozenset[str]


@dataclass(frozen=True)
class Dataset:
    """Tools with unique ids, and tasks with at least one relevant tool each."""

    name: str
    tools: Sequence[ToolDefinition]
    tasks: Sequence[Task]


class _ToolLine(Contract):
    id: str
    server: str = Field(min_length=1)
    name: str = Field(min_length=1)
    description: str | None = None
    input_schema: JsonObject | None = None


class _QueryLine(Contract):
    query: str = Field(min_length=1)
    relevant: tuple[str, ...] = Field(min_length=1)


class _BenchTool(Contract):
    name: str
    description: str | None = None
    input_schema: JsonObject | None = Field(default=None, alias="inputSchema")


class _BenchListing(Contract):
    tools: tuple[_BenchTool, ...]


class _BenchServer(Contract):
    tools: dict[str, _BenchListing]


class _BenchMetadata(Contract):
    tools: str = Field(alias="Tools")


class _BenchTask(Contract):
    question: str = Field(alias="Question", min_length=1)
    metadata: _BenchMetadata = Field(alias="Annotator Metadata")


def read_livemcpbench(folder: Path) -> Dataset:
    """Read LiveMCPBench: every tool with an annotated name is relevant; tasks without one are left
    out. Raises DatasetError."""
    servers = _parse(folder / "tools.json", TypeAdapter(tuple[_BenchServer, ...]))
    tools = {
        tool.tool_id: tool
        for entry in servers
        for server, listing in entry.tools.items()
        for tool in (_definition(server, each) for each in listing.tools)
    }
    named: dict[str, set[str]] = defaultdict(set)
    for tool in tools.values():
        named[tool.name].add(tool.tool_id)
    annotated = _parse(folder / "all_annotations.json", TypeAdapter(tuple[_BenchTask, ...]))
    tasks = [
        Task(task.question[:_MAX_INTENT], frozenset(ids))
        for task in annotated
        if (ids := {id_ for name in _names(task) for id_ in named.get(name, ())})
    ]
    return _checked(Dataset("LiveMCPBench", list(tools.values()), tasks), folder)


def read_jsonl(tools_file: Path, queries_file: Path) -> Dataset:
    """Read a data set of one tool and one query a line; other keys of a line are ignored. Of tools
    with the same server and name the later ones get numbers. Raises DatasetError."""
    ids: dict[str, ToolDefinition] = {}
    taken: set[str] = set()
    for place, line in _lines(tools_file, TypeAdapter(_ToolLine)):
        if line.id in ids:
            raise DatasetError(
                f"{place}: the id {line.id!r} is given twice; give each tool its own"
            )
        tool = ToolDefinition(
            server=_OUTSIDE_IDS.sub("-", line.server),
            name=_OUTSIDE_IDS.sub("-", line.name),
            description=line.description or "",
            input_schema=line.input_schema or {},
        )
        ids[line.id] = _numbered(tool, taken)
    tasks: list[Task] = []
    for place, line in _lines(queries_file, TypeAdapter(_QueryLine)):
        unknown = sorted(set(line.relevant) - ids.keys())
        if unknown:
            raise DatasetError(f"{place}: {unknown[0]!r} is no id of {tools_file}; correct either")
        tasks.append(
            Task(line.query[:_MAX_INTENT], frozenset(ids[id_].tool_id for id_ in line.relevant))
        )
    tools = list(ids.values())
    return _checked(Dataset(f"{tools_file.name}, {queries_file.name}", tools, tasks), tools_file)


def _numbered(tool: ToolDefinition, taken: set[str]) -> ToolDefinition:
    """Give the tool a number where its id is taken, and take its id."""
    found, number = tool, 2
    while found.tool_id in taken:
        found, number = tool.model_copy(update={"name": f"{tool.name}-{number}"}), number + 1
    taken.add(found.tool_id)
    return found


def _definition(server: str, tool: _BenchTool) -> ToolDefinition:
    return ToolDefinition(
        server=_OUTSIDE_IDS.sub("-", server),
        name=tool.name,
        description=tool.description or "",
        input_schema=tool.input_schema or {},
    )


def _names(task: _BenchTask) -> Sequence[str]:
    return [_NUMBER.sub("", line).strip() for line in task.metadata.tools.splitlines()]


def _checked(dataset: Dataset, place: Path) -> Dataset:
    counts: dict[str, int] = defaultdict(int)
    for tool in dataset.tools:
        counts[tool.tool_id] += 1
        if not is_tool_id(tool.tool_id):
            raise DatasetError(f"{place}: {tool.tool_id!r} is no valid tool id; rename the tool")
        if counts[tool.tool_id] > 1:
            raise DatasetError(f"{place}: {tool.tool_id!r} is there twice; rename one of the tools")
    if not dataset.tasks:
        raise DatasetError(f"{place}: no query has a relevant tool; there is nothing to measure")
    return dataset


def _lines(path: Path, adapter: TypeAdapter[T]) -> Iterator[tuple[str, T]]:
    for number, line in enumerate(_text(path).splitlines(), 1):
        if line.strip():
            place = f"{path}, line {number}"
            try:
                yield place, adapter.validate_json(line)
            except ValidationError as error:
                raise DatasetError(_explained(place, error)) from error


def _parse(path: Path, adapter: TypeAdapter[T]) -> T:
    try:
        return adapter.validate_json(_text(path))
    except ValidationError as error:
        raise DatasetError(_explained(str(path), error)) from error


def _explained(place: str, error: ValidationError) -> str:
    return f"{place}: {faults_of(error)[0]}; correct it, or leave the line out"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DatasetError(f"{path}: {reason}; give the path of a readable file") from error
