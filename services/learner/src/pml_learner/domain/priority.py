"""Priority of a trace for replay: the surprise of its run."""

from pml_common.contracts.capability import PathStats

UNSEEN = 1.0
"""Priority of a new path, the highest."""

_DURATION_TOLERANCE = 0.5
_DURATION_SURPRISE = 0.2


def priority(known: PathStats | None, *, success: bool, duration_ms: float) -> float:
    """Compute |predicted - actual|, more if the duration is off by over half the mean; in [0, 1].

    `known` are the path's statistics before the run.
    """
    if known is None:
        return UNSEEN
    surprise = abs(known.success_rate - float(success))
    mean = known.mean_duration_ms
    if mean > 0 and abs(duration_ms - mean) > _DURATION_TOLERANCE * mean:
        surprise += _DURATION_SURPRISE
    return min(1.0, surprise)
