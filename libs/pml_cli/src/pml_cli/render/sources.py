"""Rendering of sources of programs."""

from pml_common.contracts.source import CapabilitySource, FromDag, FromTool


def source_text(source: CapabilitySource) -> str:
    """Describe a source: `code`, `dag of 3 tasks`, `tool fs:read with defaults for path`."""
    match source:
        case FromDag(dag={"tasks": list(tasks)}):
            return f"dag of {len(tasks)} task{'s' if len(tasks) != 1 else ''}"
        case FromTool(tool_id=tool_id, default_args=given):
            return f"tool {tool_id}" + (f" with defaults for {', '.join(given)}" if given else "")
        case _:
            return source.type
