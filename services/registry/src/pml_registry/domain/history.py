"""A record's history: what was changed, and what of the code."""

import difflib
from collections.abc import Sequence

from pml_common.contracts.dns import HistoryEntry
from pml_registry.domain.record_changes import StoredChange

_MAX_DIFF = 64_000
"""Characters; the rest of a longer diff is left out, with a line that says so."""


def history_entry(name: str, change: StoredChange, codes: Sequence[str]) -> HistoryEntry:
    """Build an entry; `codes` are those of the version before the change's and of its own, where
    it made a version and there is one before it."""
    return HistoryEntry(
        sequence=change.sequence,
        change=change.change,
        principal=change.principal,
        at=change.at,
        version=change.version,
        version_tag=None if change.tag is None else str(change.tag),
        details=change.details,
        key_id=change.key_id,
        signed_at=change.signed_at,
        diff=unified_diff(name, change.version, *codes) if codes else None,
    )


def unified_diff(name: str, version: int, before: str, after: str) -> str:
    """Return the unified diff of two versions' code, the later one numbered `version`."""
    lines = difflib.unified_diff(
        before.splitlines(),
        after.splitlines(),
        fromfile=f"{name}@{version - 1}",
        tofile=f"{name}@{version}",
        lineterm="",
    )
    text = "\n".join(lines)
    if len(text) <= _MAX_DIFF:
        return text
    shown = text[:_MAX_DIFF].rpartition("\n")[0]
    return f"{shown}\n… {len(text) - len(shown)} characters more"
