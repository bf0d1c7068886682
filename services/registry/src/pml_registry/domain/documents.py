"""What a tool or a capability is found by: one text for meaning and for words."""

import re
from collections.abc import Sequence

from pml_common.contracts.tool import ToolDefinition

LONGEST = 4000
"""Characters; the model reads no further than some hundred words."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[_\-./:]+")


def spoken(name: str) -> str:
    """An identifier as words: `fs:readTextFile` is `fs read Text File`."""
    return " ".join(_SEPARATORS.sub(" ", _CAMEL.sub(" ", name)).split())


def tool_document(tool: ToolDefinition) -> str:
    """A tool's name as words, its title, its description."""
    return _joined(f"{spoken(tool.server)}: {spoken(tool.name)}", tool.title, tool.description)


def capability_document(name: str, description: str, tools_used: Sequence[str]) -> str:
    """A capability's name as words, what it is for, the tools it uses."""
    uses = f"Uses {', '.join(map(spoken, tools_used))}" if tools_used else None
    return _joined(spoken(name), description, uses)


def _joined(*sentences: str | None) -> str:
    return ". ".join(sentence.strip() for sentence in sentences if sentence)[:LONGEST]
