"""Views of stored records."""

from pml_registry.domain.ranking import Ranked
from pml_registry.domain.record_views import Presented, description_of, discovery_hits
from services.registry.tests.support.builders import record, tool


def test_hits_keep_their_rank_and_omit_removed_ones() -> None:
    known = record()
    capability_id = str(known.capability_id)
    ranked = [
        Ranked("capability", capability_id, 0.9),
        Ranked("tool", "fs:gone", 0.8),
        Ranked("capability", "gone", 0.7),
        Ranked("tool", "fs:read", 0.6),
    ]
    shown = Presented(
        known.capability_id,
        known.name,
        known.description,
        known.parameters_schema,
        known.tools_used,
        known.usage,
        known.source,
        known.code,
    )
    hits = discovery_hits(ranked, {"fs:read": tool("fs:read")}, {capability_id: shown})
    assert [(hit.type, hit.name, hit.score) for hit in hits] == [
        ("capability", known.name, 0.9),
        ("tool", "read", 0.6),
    ]


def test_a_description_has_the_code_and_what_its_callers_need() -> None:
    known = record("fs:read", "reads it")
    described = description_of(known)
    assert (described.name, described.description, described.code) == (
        "fs:read",
        "reads it",
        known.code,
    )
    assert (described.code_hash, described.verified) == (known.code_hash, known.verified)
