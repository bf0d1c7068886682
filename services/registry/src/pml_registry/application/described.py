"""Texts, terms and vectors that behaviours are found by."""

from pml_registry.domain.documents import capability_document, capability_terms
from pml_registry.ports import BehaviourTexts, Embedder, FoundBy


async def found_by(name: str, texts: BehaviourTexts, embedder: Embedder) -> FoundBy:
    """Describe a behaviour under a name, and embed that. Raises the error of the model's
    loading."""
    described = name, texts.description, texts.tools_used
    document = capability_document(*described)
    terms = capability_terms(*described, texts.parameters_schema)
    return FoundBy(document, terms, await embedder.embed([document]))
