"""Learning again from stored traces: in steps, over lost traces, up to a base."""

from collections.abc import Sequence
from dataclasses import replace

from pml_common.contracts.executor import RunFinished
from pml_learner.domain.lesson import Experience
from pml_learner.domain.relearning import Learned, Step, StoredTrace, folded_away, rebuilt
from pml_learner.domain.state import State
from pml_learner.domain.temporal_difference import TdRule
from services.learner.tests.support.ended_runs import lessons_in_turn, runs_of_every_kind

RULE, NEXT_RULE = TdRule(), TdRule(alpha=0.5, version=2)
RUNS = runs_of_every_kind(10)


def learned(runs: Sequence[RunFinished] = RUNS) -> Learned:
    """The state that runs have taught live."""
    return Learned(lessons_in_turn(runs, RULE)[-1].experience, State())


def traces(after: int = 0, up_to: int = 10) -> Sequence[StoredTrace]:
    """The stored traces between two positions."""
    lessons = lessons_in_turn(RUNS, RULE)[after:up_to]
    return [
        StoredTrace(position, lesson.trace, lesson.run.principal)
        for position, lesson in enumerate(lessons, after + 1)
    ]


def in_steps(known: Learned, rule: TdRule, limit: int) -> tuple[int, Step]:
    """Rebuild to the end; return the number of steps and the last."""
    step, steps = Step(known, is_done=False), 0
    while not step.is_done:
        _, at = step.learned.start(rule)
        step, steps = rebuilt(step.learned, traces(at, at + limit), rule, limit), steps + 1
    return steps, step


def test_a_rebuild_in_steps_gives_what_was_learned_live() -> None:
    steps, done = in_steps(learned(), RULE, 4)
    assert (steps, done.changed, done.missing) == (3, False, 0)
    assert done.learned == learned()


def test_a_rebuild_by_other_rules_changes_what_was_learned() -> None:
    _, done = in_steps(learned(), NEXT_RULE, 4)
    after = done.learned.experience
    assert after.state == lessons_in_turn(RUNS, NEXT_RULE)[-1].experience.state
    assert (done.changed, done.learned.is_stale) == (True, True)
    assert (after.rule_version, after.rebuilds, after.revision) == (2, 1, 11)


def test_a_rebuild_goes_on_where_one_by_the_same_rules_has_stopped_after_the_base() -> None:
    way = rebuilt(learned(), traces(0, 4), RULE, 4).learned
    assert way.start(RULE) == (lessons_in_turn(RUNS[:4], RULE)[-1].experience.state, 4)
    assert way.start(NEXT_RULE) == (State(), 0)
    later = folded_away(way, traces(0, 6), RULE, 6)
    assert later.start(RULE) == (later.base, 6)


def test_what_lost_traces_taught_stays_and_becomes_the_base() -> None:
    step = rebuilt(learned(), [*traces(0, 3), *traces(5)], RULE, 99)
    after = step.learned.experience
    assert (step.missing, step.changed) == (2, False)
    assert (after.state, after.base_position) == (learned().experience.state, 10)
    assert step.learned.base == after.new_base == after.state


def test_of_what_lacks_lessons_and_has_lost_traces_more_lessons_are_kept() -> None:
    three = lessons_in_turn(RUNS[:3], RULE)[-1].experience.state
    stale = Learned(Experience(state=three, position=10), State(), is_stale=True)
    step = rebuilt(stale, traces(2), RULE, 99)
    assert (step.missing, step.changed) == (2, True)
    assert step.learned.experience.state.counts.runs == 10
    assert step.learned.experience.state.counts != three.counts


def test_a_base_takes_the_lessons_of_the_traces_before_it() -> None:
    some = folded_away(learned(), traces(0, 6), RULE, 6)
    assert some.base == some.experience.new_base
    assert some.base == lessons_in_turn(RUNS[:6], RULE)[-1].experience.state
    assert (some.experience.state, some.base_position) == (learned().experience.state, 6)
    every = folded_away(replace(some, is_stale=True), traces(6), RULE, 10)
    assert (every.experience.state, every.base_position) == (learned().experience.state, 10)
    assert every.base == every.experience.state
