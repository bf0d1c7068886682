"""Tools of MCP servers, as in the tool catalog."""

import hashlib
import json
from typing import Annotated, Final

from pydantic import Field, JsonValue, StringConstraints

from pml_common.contracts.base import Contract

ToolId = Annotated[str, StringConstraints(pattern=r"^[^:\s]+:[^\s]+$", max_length=256)]
"""`server:tool`."""

JsonObject = dict[str, JsonValue]

ENVELOPE: Final = frozenset({"content", "data", "result", "structuredContent", "text"})
"""Keys under which other hosts put what a tool returned."""


def args_hash(args: JsonObject) -> str:
    """Return the SHA-256 of the arguments in canonical JSON, hex."""
    canonical = json.dumps(args, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class ToolAnnotations(Contract):
    """A server's hints (MCP `ToolAnnotations`); absent means unknown."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


def _is_none(value: object) -> bool:
    """Exclude unset fields from messages and from the hash."""
    return value is None


def _is_empty(value: object) -> bool:
    return not value


class ToolDefinition(Contract):
    """One tool as its server declares it; schemas are JSON Schema objects.

    `annotations` are trusted hints. If the configuration does not trust the server, its hints are
    in `claims`, which has no effect. `meta` is MCP's `_meta` without keys that differ between
    listings; in it and in `icons` long texts are replaced by their digest. `learned_output` is the
    schema of results seen so far where the server gives no output schema: no part of the
    definition, and later results may differ.
    """

    server: str
    name: str
    title: str | None = None
    description: str = ""
    input_schema: JsonObject = Field(default_factory=lambda: {"type": "object"})
    output_schema: JsonObject | None = None
    annotations: ToolAnnotations = ToolAnnotations()
    claims: ToolAnnotations | None = Field(default=None, exclude_if=_is_none)
    meta: JsonObject = Field(default_factory=dict[str, JsonValue], exclude_if=_is_empty)
    icons: tuple[JsonObject, ...] = Field(default=(), exclude_if=_is_empty)
    learned_output: JsonObject | None = Field(default=None, exclude_if=_is_none)

    @property
    def tool_id(self) -> str:
        """`server:tool`."""
        return f"{self.server}:{self.name}"

    @property
    def definition_hash(self) -> str:
        """SHA-256 of everything that a person approves about the tool, hex."""
        content = self.model_dump(mode="json", exclude={"learned_output"})
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


class QuarantinedTool(Contract):
    """A tool that is not offered: its server changed these parts of the accepted definition.
    `definition_hash` is that of the definition that the server lists now."""

    server: str
    name: str
    changed: tuple[str, ...]
    definition_hash: str

    @property
    def explanation(self) -> str:
        """The reason, and what to do about it."""
        return (
            f"{self.server}:{self.name} is quarantined: its server changed its definition "
            f"({', '.join(self.changed)}) after it was accepted. Nothing was called. See what "
            f"changed with `pml servers diff {self.server} {self.name}`, accept it with "
            f"`pml servers accept {self.server} {self.name}`"
        )
