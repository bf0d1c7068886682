"""Handles `outputs-observed`."""

from collections.abc import Sequence

from pml_common.contracts import catalog, ids
from pml_common.contracts.base import Message
from pml_common.contracts.gateway import OutputsObserved
from pml_common.contracts.registry import CatalogChanged
from pml_registry.domain.tool_catalog import widened
from pml_registry.ports import ToolStore

_CONSUMER = catalog.REGISTRY_ON_OUTPUTS_OBSERVED.durable


async def on_outputs_observed(observed: OutputsObserved, tools: ToolStore) -> Sequence[Message]:
    """Widen what is known of the results of a server's tools; publish a change, if any."""
    scope, server = observed.scope, observed.server
    async with tools.once(scope, observed.event_id, _CONSUMER) as transaction:
        if transaction.replayed is not None:
            return transaction.replayed
        stored = await transaction.server(scope, server)
        names = [f"{server}:{output.name}" for output in observed.outputs]
        wider = widened(observed, stored.tools, await transaction.outputs(scope, names))
        await transaction.save_outputs(scope, wider)
        change = CatalogChanged(
            scope=scope,
            event_id=ids.effect_id(observed.event_id, "catalog-changed"),
            server=server,
        )
        return transaction.conclude([change] if wider else ())
