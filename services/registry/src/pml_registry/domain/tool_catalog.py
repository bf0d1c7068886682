"""The tool catalog: the changes in a server's new list, and edges between tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from pml_common.contracts.gateway import OutputsObserved, ToolsListed
from pml_common.contracts.tool import JsonObject, QuarantinedTool, ToolDefinition, ToolId
from pml_common.json_shapes import as_schema, merged

_TOOL_ID: TypeAdapter[str] = TypeAdapter(ToolId)

OBSERVED_FROM = 3
"""Number of observations that make an inferred edge an observed one."""


@dataclass(frozen=True)
class KnownTool:
    """A stored tool; `models` are those that it has a vector of."""

    definition_hash: str
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnownServer:
    """A stored server: the time of its last list, its tools by id, and those in quarantine."""

    listed_at: datetime | None
    tools: Mapping[str, KnownTool]
    quarantined: tuple[QuarantinedTool, ...] = ()


@dataclass(frozen=True)
class LearnedOutput:
    """The shape of the results of a tool under one definition."""

    definition_hash: str
    shape: JsonObject


@dataclass(frozen=True)
class CatalogUpdate:
    """Changes of a list: tools to store, the new or redefined among them, and ids to remove."""

    saved: tuple[ToolDefinition, ...]
    redefined: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def visible(self) -> bool:
        """Whether readers of the catalog see a difference."""
        return bool(self.redefined or self.removed)


def is_tool_id(text: str) -> bool:
    """Whether a text is a valid tool id."""
    try:
        _TOOL_ID.validate_python(text)
    except ValidationError:
        return False
    return "\x00" not in text


def valid_tools(server: str, tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """The server's own tools with valid ids; the last definition of each id."""
    own = (tool for tool in tools if tool.server == server and is_tool_id(tool.tool_id))
    return tuple({tool.tool_id: tool for tool in own}.values())


def valid_quarantine(listed: ToolsListed) -> tuple[QuarantinedTool, ...]:
    """The server's own tools in quarantine with valid ids, but for those that it lists as usable,
    by name."""
    usable = {tool.name for tool in listed.tools}
    own = {
        tool.name: tool
        for tool in listed.quarantined
        if tool.server == listed.server and is_tool_id(f"{tool.server}:{tool.name}")
    }
    return tuple(own[name] for name in sorted(own.keys() - usable))


def widened(
    observed: OutputsObserved,
    tools: Mapping[str, KnownTool],
    known: Mapping[str, LearnedOutput],
) -> Mapping[str, LearnedOutput]:
    """Return the outputs that a message makes wider than they are `known`, by tool id. What it says
    of other definitions than those of the stored `tools` is of no concern."""
    wider: dict[str, LearnedOutput] = {}
    for output in observed.outputs:
        tool_id = f"{observed.server}:{output.name}"
        tool, before = tools.get(tool_id), wider.get(tool_id, known.get(tool_id))
        if tool is None or tool.definition_hash != output.definition_hash:
            continue
        shape = output.result_schema
        if before is not None and before.definition_hash == output.definition_hash:
            shape = merged(before.shape, shape)
        after = LearnedOutput(output.definition_hash, shape)
        if after != before:
            wider[tool_id] = after
    return wider


def with_output(tool: ToolDefinition, shape: JsonObject | None) -> ToolDefinition:
    """Return a tool with what was learned of its results, where its server says nothing."""
    schema = as_schema(shape or {})
    if not schema or tool.output_schema is not None:
        return tool
    return tool.model_copy(update={"learned_output": schema})


def is_outdated(listed_at: datetime | None, known: KnownServer) -> bool:
    """Whether a later list of the server is stored."""
    return listed_at is not None and known.listed_at is not None and listed_at < known.listed_at


def changes_in(
    listed: Sequence[ToolDefinition], known: Mapping[str, KnownTool], model: str | None
) -> CatalogUpdate:
    """Compare a complete, valid list with the stored tools; those without a vector of the model are
    stored again. Without a model nothing can be embedded."""
    redefined: list[str] = []
    saved: list[ToolDefinition] = []
    for tool in listed:
        before = known.get(tool.tool_id)
        if before is None or before.definition_hash != tool.definition_hash:
            redefined.append(tool.tool_id)
            saved.append(tool)
        elif model is not None and model not in before.models:
            saved.append(tool)
    listed_ids = {tool.tool_id for tool in listed}
    removed = tuple(sorted(known.keys() - listed_ids))
    return CatalogUpdate(saved=tuple(saved), redefined=tuple(redefined), removed=removed)
