"""The catalogue of tools: what a server's new list changes (C8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from pml_common.contracts.tool import ToolDefinition, ToolId

_TOOL_ID: TypeAdapter[str] = TypeAdapter(ToolId)


@dataclass(frozen=True)
class KnownTool:
    """A tool as stored; `embedding_model` is None where it has no vector."""

    definition_hash: str
    embedding_model: str | None


@dataclass(frozen=True)
class KnownServer:
    """What is known of a server: when it last listed its tools, and them by id."""

    listed_at: datetime | None
    tools: Mapping[str, KnownTool]


@dataclass(frozen=True)
class CatalogueChange:
    """What to do with a list: tools to save, those among them new or redefined, ids to remove."""

    saved: tuple[ToolDefinition, ...]
    redefined: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def visible(self) -> bool:
        """Whether readers of the catalogue would see a difference."""
        return bool(self.redefined or self.removed)


def is_tool_id(text: str) -> bool:
    """Whether a text can name a tool in the catalogue."""
    try:
        _TOOL_ID.validate_python(text)
    except ValidationError:
        return False
    return "\x00" not in text


def acceptable(server: str, tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """The server's own tools with usable ids, each id once: of two definitions the later."""
    own = (tool for tool in tools if tool.server == server and is_tool_id(tool.tool_id))
    return tuple({tool.tool_id: tool for tool in own}.values())


def outdated(listed_at: datetime | None, known: KnownServer) -> bool:
    """Whether the server is known to have listed its tools later."""
    return listed_at is not None and known.listed_at is not None and listed_at < known.listed_at


def compare(
    listed: Sequence[ToolDefinition], known: Mapping[str, KnownTool], model: str
) -> CatalogueChange:
    """What a complete, acceptable list changes; a vector of another model counts as none."""
    redefined: list[str] = []
    saved: list[ToolDefinition] = []
    for tool in listed:
        before = known.get(tool.tool_id)
        if before is None or before.definition_hash != tool.definition_hash:
            redefined.append(tool.tool_id)
            saved.append(tool)
        elif before.embedding_model != model:
            saved.append(tool)
    kept = {tool.tool_id for tool in listed}
    removed = tuple(sorted(known.keys() - kept))
    return CatalogueChange(saved=tuple(saved), redefined=tuple(redefined), removed=removed)
