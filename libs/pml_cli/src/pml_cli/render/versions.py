"""Rendering of versions."""

from collections.abc import Mapping


def version_line(record: Mapping[str, object]) -> str:
    """Describe a record's version and its signature."""
    tag = record.get("version_tag")
    version = f"version {record['version']}" + (f" ({tag})" if tag else "")
    key = record.get("key_id")
    signed = f"signed with the key {key}" if key else "not signed"
    return f"{version}, {signed}, {'verified' if record.get('verified') else 'not verified'}"
