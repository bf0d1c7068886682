"""Contents of the conformance suite's fixtures: blocks, prompts and a schema."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
    TextResourceContents,
)

Messages = Callable[[Mapping[str, str]], list[PromptMessage]]


@dataclass(frozen=True)
class FixturePrompt:
    """A prompt, and its messages for given arguments."""

    prompt: Prompt
    messages: Messages


def text(said: str) -> TextContent:
    """Return a block of text."""
    return TextContent(text=said)


def _embedded(uri: str, mime_type: str, said: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=said))


IMAGE: Final = ImageContent(
    mime_type="image/png",
    data=(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
    ),
)
AUDIO: Final = AudioContent(
    mime_type="audio/wav",
    data="UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=",
)
EMBEDDED: Final = _embedded(
    "test://embedded-resource", "text/plain", "This is an embedded resource content."
)
MIXED: Final = _embedded(
    "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
)


def _from_user(*blocks: Any) -> list[PromptMessage]:
    return [PromptMessage(role="user", content=block) for block in blocks]


def _prompt(name: str, messages: Messages, *arguments: str) -> FixturePrompt:
    taken = [
        PromptArgument(name=one, description=f"Test: {one}.", required=True) for one in arguments
    ]
    return FixturePrompt(
        Prompt(name=name, description=f"Test: {name}.", arguments=taken or None), messages
    )


PROMPTS: Final = (
    _prompt("simple_prompt", lambda _: _from_user(text("This is a simple prompt for testing."))),
    _prompt(
        "prompt_with_arguments",
        lambda given: _from_user(text(f"arg1={given.get('arg1')!r}, arg2={given.get('arg2')!r}")),
        *("arg1", "arg2"),
    ),
    _prompt(
        "prompt_with_embedded_resource",
        lambda given: _from_user(
            _embedded(given.get("resourceUri", ""), "text/plain", "Embedded for testing."),
            text("Please process the embedded resource above."),
        ),
        "resourceUri",
    ),
    _prompt("prompt_with_image", lambda _: _from_user(IMAGE, text("Please analyze the image."))),
    _prompt("input_required_result_prompt", lambda _: []),
)

SCHEMA_2020_12: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
