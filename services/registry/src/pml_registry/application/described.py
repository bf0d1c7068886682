"""Texts, terms and vectors that behaviours are found by."""

import logging
from collections.abc import Sequence

from pml_registry.domain.documents import capability_document, capability_terms
from pml_registry.ports import BehaviourTexts, FoundBy
from pml_registry.ports.vectors import Embedded, Embedder, EmbedderUnavailable

log = logging.getLogger(__name__)


async def embed_or_later(embedder: Embedder, texts: Sequence[str]) -> Embedded:
    """Embed texts that are stored; where the embedder is away, they are embedded in the background
    once it is back."""
    try:
        return await embedder.embed(texts)
    except EmbedderUnavailable as outage:
        log.warning("%d texts are embedded later: %s", len(texts), outage)
        return Embedded.later()


async def found_by(name: str, texts: BehaviourTexts, embedder: Embedder) -> FoundBy:
    """Describe a behaviour under a name, and embed that, if the embedder answers."""
    described = name, texts.description, texts.tools_used
    document = capability_document(*described)
    terms = capability_terms(*described, texts.parameters_schema)
    embedded = await embed_or_later(embedder, [document])
    return FoundBy(document, terms, embedded, texts.description)
