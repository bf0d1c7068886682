"""Provides edges between all tools of a catalog, from their schemas alone."""

from collections.abc import Collection, Iterator, Sequence

from pml_common.contracts.provides import ProvidesEdge
from pml_common.contracts.tool import ToolDefinition
from pml_common.provides.coverage import Provision, provision
from pml_common.provides.fields import Inputs, Outputs
from pml_common.provides.names import is_relative


def create_provides_edges(
    tools: Sequence[ToolDefinition], changed: Collection[str] | None = None
) -> list[ProvidesEdge]:
    """Return an edge for every pair of tools where the first's result covers input of the second;
    with `changed`, ids of tools, only for pairs with one of these.

    In the catalog's order, by provider, then consumer; a tool does not feed itself, and one without
    an output schema feeds none. Between servers an edge needs more than names whose meaning differs
    by server (`id`, `name`, `status`).
    """
    everyone = _Consumers(tools)
    among = everyone if changed is None else _Consumers([t for t in tools if t.tool_id in changed])
    edges: list[ProvidesEdge] = []
    for provider in tools:
        if provider.output_schema:
            outputs = Outputs(provider.output_schema)
            whole = changed is None or provider.tool_id in changed
            for consumer, inputs in (everyone if whole else among).near(outputs):
                found = provision(outputs, inputs)
                if consumer is not provider and _is_telling(found, provider, consumer):
                    edges.append(_edge(provider, consumer, found))
    return edges


class _Consumers:
    """An index of tools by input field names, so that only pairs with a common one are compared."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self._all = [(tool, Inputs(tool.input_schema)) for tool in tools]
        self._by_name: dict[str, list[int]] = {}
        self._payload: list[int] = []
        for position, (_, inputs) in enumerate(self._all):
            for name in inputs.names:
                self._by_name.setdefault(name, []).append(position)
            if inputs.takes_payload:
                self._payload.append(position)

    def near(self, outputs: Outputs) -> Iterator[tuple[ToolDefinition, Inputs]]:
        """Return the tools that could take a result, in the catalog's order."""
        found = set(self._payload if outputs.payloads else ())
        for name in outputs.by_name:
            found.update(self._by_name.get(name, ()))
        return (self._all[position] for position in sorted(found))


def _is_telling(found: Provision, provider: ToolDefinition, consumer: ToolDefinition) -> bool:
    if found.coverage is None or provider.server == consumer.server:
        return found.coverage is not None
    return any(
        field.type_compatible and not is_relative(field.to_field) for field in found.field_mapping
    )


def _edge(provider: ToolDefinition, consumer: ToolDefinition, found: Provision) -> ProvidesEdge:
    # Not validated again: schemas are large, and were validated with their tools.
    return ProvidesEdge.model_construct(
        from_=provider.tool_id,
        to=consumer.tool_id,
        coverage=found.coverage,
        provider_output_schema=found.provider_output_schema,
        consumer_input_schema=found.consumer_input_schema,
        field_mapping=found.field_mapping,
    )
