"""Named capabilities as MCP tools."""

from collections.abc import Iterable, Sequence
from typing import Final

from pml_common.contracts.capability import Health
from pml_common.contracts.decision import Policy
from pml_common.contracts.display_names import parse_display_name
from pml_common.contracts.dns import RecordSummary
from pml_common.contracts.parameters import without_certain
from pml_common.contracts.registry import CapabilityChanged
from pml_common.contracts.tool import JsonObject

_ANY_ARGUMENTS: Final[JsonObject] = {"type": "object"}
_WARNINGS: Final[dict[Health, str]] = {
    "failing": "FAILING: it fails more often than it succeeds.",
    "degraded": "DEGRADED: of its latest runs more than one in ten failed.",
}

_UNSEEN_CHANGES: Final = ("learned", "created", "aliased", "tagged", "labelled")


def changes_tools(change: CapabilityChanged) -> bool:
    """Whether a change of a capability shows in the listed tools, which tell name, description and
    health."""
    is_told = change.health is not None or change.described
    return is_told or change.change not in _UNSEEN_CHANGES


def callable_ones(records: Iterable[RecordSummary], policy: Policy) -> Sequence[RecordSummary]:
    """The records whose names the policy does not deny."""
    return [
        record for record in records if policy.verdict_on_capability([record.name])[0] != "deny"
    ]


def capability_listing(record: RecordSummary) -> JsonObject:
    """Build the MCP listing of a named capability: `cap_fs_read_json`, with its true name as title
    and the schema of its arguments. One that fails says so first, and what to call instead. Its
    hints say nothing, for its tools may do anything."""
    return {
        "name": parse_display_name(record.name).mcp_name,
        "title": record.name,
        "description": _described(record),
        "inputSchema": {**_ANY_ARGUMENTS, **without_certain(record.parameters_schema or {})},
    }


def _described(record: RecordSummary) -> str:
    description = record.description or f"The capability {record.name}."
    if record.health not in _WARNINGS:
        return description
    good = record.last_good
    instead = "" if good is None else f" Call cap:{good} instead, which is healthy."
    return f"{_WARNINGS[record.health]}{instead} {description}"
