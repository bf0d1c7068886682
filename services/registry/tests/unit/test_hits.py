"""What discovery tells."""

from pml_registry.domain.discovery_results import discovery_hits
from pml_registry.domain.ranking import Ranked
from services.registry.tests.samples import record, tool


def test_hits_keep_their_rank_and_leave_out_what_is_gone() -> None:
    known = record()
    capability_id = str(known.capability_id)
    ranked = [
        Ranked("capability", capability_id, 0.9),
        Ranked("tool", "fs:gone", 0.8),
        Ranked("capability", "gone", 0.7),
        Ranked("tool", "fs:read", 0.6),
    ]
    hits = discovery_hits(ranked, {"fs:read": tool("fs:read")}, {capability_id: known})
    assert [(hit.type, hit.name, hit.score) for hit in hits] == [
        ("capability", known.name, 0.9),
        ("tool", "read", 0.6),
    ]
