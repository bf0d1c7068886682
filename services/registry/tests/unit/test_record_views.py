"""Views of stored records."""

from pml_registry.domain.ranking import Ranked
from pml_registry.domain.record_views import discovery_hits, presented
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
    hits = discovery_hits(ranked, {"fs:read": tool("fs:read")}, {capability_id: presented(known)})
    assert [(hit.type, hit.name, hit.score) for hit in hits] == [
        ("capability", known.name, 0.9),
        ("tool", "read", 0.6),
    ]
