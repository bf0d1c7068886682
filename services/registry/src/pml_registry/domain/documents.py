"""Search documents of tools and capabilities, for meaning and for words."""

import re
from collections.abc import Sequence

from pml_common.contracts.tool import ToolDefinition

MAX_CHARACTERS = 4000
"""The model reads only the first few hundred words."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[_\-./:]+")


def as_words(name: str) -> str:
    """Split an identifier into words: `fs:readTextFile` is `fs read Text File`."""
    return " ".join(_SEPARATORS.sub(" ", _CAMEL.sub(" ", name)).split())


def tool_document(tool: ToolDefinition) -> str:
    """A tool's name as words, its title, its description."""
    return _joined(f"{as_words(tool.server)}: {as_words(tool.name)}", tool.title, tool.description)


def capability_document(name: str, description: str, tools_used: Sequence[str]) -> str:
    """A capability's name as words, its description, the tools it uses."""
    uses = f"Uses {', '.join(map(as_words, tools_used))}" if tools_used else None
    return _joined(as_words(name), description, uses)


def _joined(*sentences: str | None) -> str:
    return ". ".join(sentence.strip() for sentence in sentences if sentence)[:MAX_CHARACTERS]
