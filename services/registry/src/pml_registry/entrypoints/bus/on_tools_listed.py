"""Handles `tools-listed`."""

import logging
from collections.abc import Sequence

from pml_common.bus.errors import Retryable
from pml_common.contracts import catalog, ids
from pml_common.contracts.base import Message
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import CatalogChanged
from pml_common.contracts.tool import ToolDefinition
from pml_registry.application.described import embed_or_later
from pml_registry.domain.documents import tool_summary
from pml_registry.domain.tool_catalog import (
    changes_in,
    is_outdated,
    valid_quarantine,
    valid_tools,
)
from pml_registry.ports import ToolStore
from pml_registry.ports.vectors import Embedder, EmbedderUnavailable, Vector

log = logging.getLogger(__name__)

_CONSUMER = catalog.REGISTRY_ON_TOOLS_LISTED.durable


async def on_tools_listed(
    listed: ToolsListed, tools: ToolStore, embedder: Embedder
) -> Sequence[Message]:
    """Replace the server's part of the tool catalog by its list, without its tools in quarantine;
    publish a change, if any.

    Texts are embedded before the rows are locked. Raises Retryable if the rows changed meanwhile.
    """
    accepted = valid_tools(listed.server, listed.tools)
    if len(accepted) < len(listed.tools):
        log.warning(
            "%s: server %s: %d of its %d tools are ignored: duplicate or invalid name",
            listed.scope,
            listed.server,
            len(listed.tools) - len(accepted),
            len(listed.tools),
        )
    quarantined = valid_quarantine(listed)
    known = await tools.server(listed.scope, listed.server)
    model = await _model(embedder)
    embedded, vectors = await _embed(changes_in(accepted, known.tools, model).saved, embedder)
    async with tools.once(listed.scope, listed.event_id, _CONSUMER) as transaction:
        if transaction.replayed is not None:
            return transaction.replayed
        known = await transaction.server(listed.scope, listed.server)
        if is_outdated(listed.listed_at, known):
            return transaction.conclude(())
        change = changes_in(accepted, known.tools, model)
        if any(tool.tool_id not in embedded for tool in change.saved):
            raise Retryable(f"the tools of {listed.server} changed while they were embedded")
        await transaction.replace(listed, change, vectors, model or "", quarantined)
        visible = change.visible or quarantined != known.quarantined
        return transaction.conclude(_messages(listed) if visible else ())


async def _model(embedder: Embedder) -> str | None:
    """Return the model's name; None while there is no embedder: tools are embedded later."""
    try:
        return await embedder.model()
    except EmbedderUnavailable:
        return None


async def _embed(
    tools: Sequence[ToolDefinition], embedder: Embedder
) -> tuple[set[str], dict[str, Vector]]:
    """Return the ids of the tools, and their vectors, if the embedder answers."""
    embedded = await embed_or_later(embedder, [tool_summary(tool) for tool in tools])
    ids_ = [tool.tool_id for tool in tools]
    return {*ids_}, dict(zip(ids_, embedded.vectors, strict=False))


def _messages(listed: ToolsListed) -> Sequence[CatalogChanged]:
    return [
        CatalogChanged(
            scope=listed.scope,
            event_id=ids.effect_id(listed.event_id, "catalog-changed"),
            server=listed.server,
        )
    ]
