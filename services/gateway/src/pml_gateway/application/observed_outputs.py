"""Schemas of the results of tools whose servers give none."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from pydantic import JsonValue

from pml_common.contracts.gateway import ObservedOutput, OutputsObserved
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.json_shapes import merged, shape_of

FROM: Final = 3
"""Results of a tool before anything is said about them."""


@dataclass
class _Seen:
    """The shape that the results of one tool showed, and the one that is published."""

    definition_hash: str
    shape: JsonObject
    results: int = 1
    published: JsonObject | None = None


class ObservedOutputs:
    """Sees each result of a tool without an output schema, reads at most `MOST_VALUES` values of
    it, and publishes what is new. Once the types of a tool's results are known, nothing is."""

    def __init__(
        self, publish: Callable[[OutputsObserved], Awaitable[object]], scope: Scope
    ) -> None:
        self._publish = publish
        self._scope = scope
        self._seen: dict[str, dict[str, _Seen]] = {}

    def see(self, tool: ToolDefinition, definition_hash: str, result: JsonValue) -> None:
        """Take note of a result; those that are too large are skipped."""
        shape = None if tool.output_schema is not None else shape_of(result)
        if shape is None:
            return
        of_server = self._seen.setdefault(tool.server, {})
        seen = of_server.get(tool.name)
        if seen is None or seen.definition_hash != definition_hash:
            of_server[tool.name] = _Seen(definition_hash, shape)
        else:
            seen.results += 1
            seen.shape = merged(seen.shape, shape)

    async def publish_new(self) -> None:
        """Publish what is new, one message a server. Raises BusError; it is published later."""
        for server, of_server in self._seen.items():
            new = {
                name: (seen, seen.shape)
                for name, seen in of_server.items()
                if seen.results >= FROM and seen.shape != seen.published
            }
            if not new:
                continue
            outputs = tuple(
                ObservedOutput(name=name, definition_hash=seen.definition_hash, result_schema=shape)
                for name, (seen, shape) in new.items()
            )
            await self._publish(
                OutputsObserved(scope=self._scope, event_id=uuid4(), server=server, outputs=outputs)
            )
            for seen, shape in new.values():
                seen.published = shape
