"""Handles `show-evidence`."""

from pml_common.contracts.uses import EvidenceState, RankingGain, ShowEvidence
from pml_registry.domain.trials import MIN_TRIALS, Gain
from pml_registry.ports.evidence import EvidenceStore


async def on_show_evidence(query: ShowEvidence, evidence: EvidenceStore) -> EvidenceState:
    """Return the state of the client's scope."""
    standing = (await evidence.stand(query.scope)).standing
    return EvidenceState(
        used=standing.used,
        trials=standing.trials,
        min_trials=MIN_TRIALS,
        ndcg_without=standing.without.ndcg,
        ndcg_gain=_shown(standing.ndcg),
        recall_without=standing.without.recall,
        recall_gain=_shown(standing.recall),
    )


def _shown(gain: Gain) -> RankingGain:
    return RankingGain(mean=gain.mean, low=gain.low, high=gain.high)
