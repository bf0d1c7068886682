"""Named capabilities as MCP tools."""

from collections.abc import Iterable, Sequence
from typing import Final

from pml_common.contracts.decision import Policy
from pml_common.contracts.display_names import parse_display_name
from pml_common.contracts.dns import RecordSummary
from pml_common.contracts.parameters import without_certain
from pml_common.contracts.tool import JsonObject

_ANY_ARGUMENTS: Final[JsonObject] = {"type": "object"}


def callable_ones(records: Iterable[RecordSummary], policy: Policy) -> Sequence[RecordSummary]:
    """The records whose names the policy does not deny."""
    return [
        record for record in records if policy.verdict_on_capability([record.name])[0] != "deny"
    ]


def capability_listing(record: RecordSummary) -> JsonObject:
    """Build the MCP listing of a named capability: `cap_fs_read_json`, with its true name as title
    and the schema of its arguments. Its hints say nothing, for its tools may do anything."""
    return {
        "name": parse_display_name(record.name).mcp_name,
        "title": record.name,
        "description": record.description or f"The capability {record.name}.",
        "inputSchema": {**_ANY_ARGUMENTS, **without_certain(record.parameters_schema or {})},
    }
