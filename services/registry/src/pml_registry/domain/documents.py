"""Search documents of tools and capabilities: for meaning, for words, and weighed terms."""

import re
from collections.abc import Iterator, Mapping, Sequence

from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_registry.domain.terms import as_words, weigh

MAX_CHARACTERS = 4000
"""The model reads only the first few hundred words."""

NAME_WEIGHT = 3.0
SERVER_WEIGHT = 1.0
DESCRIPTION_WEIGHT = 1.0
DETAIL_WEIGHT = 0.5
"""Field weight of parameters, and of the tools that a capability uses."""

_SENTENCE_END = re.compile(r"(?<=[.!?。])\s")


def tool_document(tool: ToolDefinition) -> str:
    """A tool's name as words, its title, its description."""
    return _joined(f"{as_words(tool.server)}: {as_words(tool.name)}", tool.title, tool.description)


def tool_summary(tool: ToolDefinition) -> str:
    """The text that is embedded: a tool's document with only the first sentence of its description.
    Instructions for use, which follow in long descriptions, blur the purpose."""
    purpose = _SENTENCE_END.split(" ".join(tool.description.split()), maxsplit=1)[0]
    return tool_document(tool.model_copy(update={"description": purpose}))


def tool_terms(tool: ToolDefinition) -> Mapping[str, float]:
    """Weighed terms of a tool's name, server, description and parameters."""
    return weigh(
        [
            (tool.name, NAME_WEIGHT),
            (tool.title or "", NAME_WEIGHT),
            (tool.server, SERVER_WEIGHT),
            (tool.description[:MAX_CHARACTERS], DESCRIPTION_WEIGHT),
            (_parameters(tool.input_schema), DETAIL_WEIGHT),
        ]
    )


def capability_document(name: str, description: str, tools_used: Sequence[str]) -> str:
    """A capability's name as words, its description, the tools it uses."""
    uses = f"Uses {', '.join(map(as_words, tools_used))}" if tools_used else None
    return _joined(as_words(name), description, uses)


def capability_terms(
    name: str, description: str, tools_used: Sequence[str], parameters_schema: JsonObject
) -> Mapping[str, float]:
    """Weighed terms of a capability's name, description, tools and parameters."""
    return weigh(
        [
            (name, NAME_WEIGHT),
            (description[:MAX_CHARACTERS], DESCRIPTION_WEIGHT),
            (" ".join(tools_used)[:MAX_CHARACTERS], DETAIL_WEIGHT),
            (_parameters(parameters_schema), DETAIL_WEIGHT),
        ]
    )


def _parameters(schema: JsonObject) -> str:
    return " ".join(_described(schema))[:MAX_CHARACTERS]


def _described(schema: JsonObject) -> Iterator[str]:
    """Names and descriptions of an object schema's properties; malformed parts are skipped."""
    properties = schema.get("properties")
    for name, declared in properties.items() if isinstance(properties, dict) else ():
        yield name
        described = declared.get("description") if isinstance(declared, dict) else None
        if isinstance(described, str):
            yield described


def _joined(*sentences: str | None) -> str:
    return ". ".join(sentence.strip() for sentence in sentences if sentence)[:MAX_CHARACTERS]
