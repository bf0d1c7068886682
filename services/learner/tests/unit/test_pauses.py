"""Pauses of live work."""

from pml_learner.domain.pauses import Pauses


def test_a_pause_begins_some_time_after_all_live_work_has_ended() -> None:
    now = [100.0]
    pauses = Pauses(lambda: now[0], 0.5)
    assert pauses.is_one
    with pauses.live():
        with pauses.live():
            now[0] += 60
        assert not pauses.is_one
    assert not pauses.is_one
    now[0] += 0.5
    assert pauses.is_one
