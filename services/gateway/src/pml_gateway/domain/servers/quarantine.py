"""Comparison of listed tool definitions with those that were accepted before."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Final

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject, QuarantinedTool, ToolAnnotations, ToolDefinition

_NAMES: Final = {
    "title": "title",
    "description": "description",
    "input_schema": "input schema",
    "output_schema": "output schema",
    "annotations": "annotations",
    "meta": "_meta",
    "icons": "icons",
}
"""The compared parts of a definition: all that its server declares."""


@dataclass(frozen=True)
class Held:
    """A listed tool that is not offered: `accepted` is the definition that was, None while that
    cannot be read."""

    listed: ToolDefinition
    accepted: ToolDefinition | None


@dataclass(frozen=True)
class Change:
    """A changed part of a definition, as lines of a unified diff."""

    part: str
    diff: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """A listing, compared: tools to offer, those held back, and the hashes of accepted definitions
    by tool id, as far as they are known."""

    offered: tuple[ToolDefinition, ...]
    held: Mapping[str, Held]
    accepted: Mapping[str, str]


def declared(tool: ToolDefinition) -> ToolDefinition:
    """Return a definition as its server declares it: whether the configuration trusts its hints
    is the operator's choice, and no change of the tool."""
    hints = tool.annotations if tool.claims is None else tool.claims
    return tool.model_copy(update={"annotations": hints, "claims": None})


def declared_hash(tool: ToolDefinition) -> str:
    """Return the hash by which definitions are compared."""
    return declared(tool).definition_hash


def compare(
    listed: Sequence[ToolDefinition],
    known: Mapping[str, str],
    read: Mapping[str, ToolDefinition],
) -> Comparison:
    """Compare a server's listing with the `known` hashes of accepted definitions, and for tools of
    another hash with the definitions that were just `read`."""
    offered: list[ToolDefinition] = []
    held: dict[str, Held] = {}
    accepted: dict[str, str] = {}
    for tool in listed:
        own, before = declared_hash(tool), read.get(tool.tool_id)
        right = known.get(tool.tool_id) if before is None else declared_hash(before)
        if right is not None:
            accepted[tool.tool_id] = right
        if own == right:
            offered.append(tool)
        else:
            held[tool.tool_id] = Held(declared(tool), before)
    return Comparison(tuple(offered), held, accepted)


def changes(held: Held) -> tuple[Change, ...]:
    """Return what the server changed, part by part."""
    if held.accepted is None:
        return ()
    before, after = _parts(held.accepted), _parts(held.listed)
    return tuple(
        Change(title, _diff(before[part], after[part], title))
        for part, title in _NAMES.items()
        if _lines(before[part]) != _lines(after[part])
    )


def quarantined(held: Held) -> QuarantinedTool | None:
    """Return the report of a tool in quarantine; None while its accepted definition cannot be
    read."""
    if held.accepted is None:
        return None
    return QuarantinedTool(
        server=held.listed.server,
        name=held.listed.name,
        changed=tuple(change.part for change in changes(held)),
        definition_hash=held.listed.definition_hash,
    )


def why_held(held: Held) -> str:
    """Explain why a tool is not offered."""
    report = quarantined(held)
    if report is not None:
        return report.explanation
    return (
        f"{held.listed.tool_id} is not offered yet: its definition could not be compared with the "
        "accepted one, because the database does not answer. Nothing was called; try again later"
    )


def _parts(tool: ToolDefinition) -> JsonObject:
    content: JsonObject = {"meta": {}, "icons": [], **tool.model_dump(mode="json")}
    hints = ToolAnnotations.model_validate(content["annotations"])
    return {**content, "annotations": hints.model_dump(mode="json", exclude_none=True)}


def _diff(before: JsonValue, after: JsonValue, title: str) -> tuple[str, ...]:
    lines = unified_diff(
        _lines(before), _lines(after), f"accepted {title}", f"listed {title}", lineterm=""
    )
    return tuple(lines)


def _lines(value: JsonValue) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return value.split("\n")
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).split("\n")
