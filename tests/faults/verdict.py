"""Invariants of a campaign: pure functions on its records."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from tests.faults.causes import cause_of, during, is_uncertain, time_lost
from tests.faults.records import ONCE, WRITES, Evidence, Injection, Run

MARGIN_S = 60.0
"""A workflow may exceed its time limit, which starts with the run, by this much."""

HALTING = ("nats", "postgres", "gateway", "executor", "analyzer")
"""Parts that a workflow needs: time without them does not count."""

UNCERTAIN_ENDS = ("outcome_unknown", "cancelled", "internal", "diverged", "timeout")
"""Kinds of errors whose messages name the calls of unknown outcome."""

OVERTAKING_ENDS = ("cancelled", "timeout", "internal")
"""Kinds of errors that end a run without running its program again."""


@dataclass(frozen=True)
class Verdict:
    """One invariant: its counts, and a description of each violation."""

    invariant: str
    numbers: str
    violations: Sequence[str]

    @property
    def passed(self) -> bool:
        """Whether it holds."""
        return not self.violations


def verdicts(evidence: Evidence) -> list[Verdict]:
    """Evaluate every invariant."""
    return [
        accepted_is_ended(evidence),
        one_end_each(evidence),
        ends_in_time(evidence),
        no_call_lost(evidence),
        no_call_repeated(evidence),
        no_effect_denied(evidence),
        counts_are_runs(evidence),
        no_needless_failure(evidence),
        ends_as_programs_say(evidence),
        no_wrong_answer(evidence),
        nothing_unreadable(evidence),
        nothing_given_up(evidence),
        healthy_in_the_end(evidence),
    ]


def accepted_is_ended(evidence: Evidence) -> Verdict:
    """Everything accepted has ended, and there are no other workflows."""
    accepted = [run for run in evidence.runs if run.asked.accepted]
    open_ones = [f"{_name(run)} is {run.status}" for run in accepted if not run.is_final]
    numbers = f"{len(accepted)} accepted, {len(accepted) - len(open_ones)} ended"
    uninvited = [f"no caller requested {unknown}" for unknown in evidence.unknown]
    return Verdict("accepted = ended", numbers, open_ones + uninvited)


def one_end_each(evidence: Evidence) -> Verdict:
    """Each workflow publishes one end, and callers receive that one."""
    ended = [run for run in evidence.runs if run.is_final]
    several = [f"{_name(run)} published {run.ends} ends" for run in ended if run.ends != 1]
    others = [
        f"{_name(run)} ended as {_end(run)}, its caller got {sorted(told)}"
        for run in ended
        if (told := run.asked.told - {_end(run)})
    ]
    numbers = f"{sum(run.ends for run in ended)} ends of {len(ended)} ended workflows"
    return Verdict("exactly one end each", numbers, several + others)


def ends_in_time(evidence: Evidence) -> Verdict:
    """No workflow exceeds its time, a margin, and the time without needed parts."""
    late, longest = list[str](), 0.0
    for run in evidence.runs:
        if not run.asked.accepted or not run.created:
            continue
        until = run.finished or evidence.now
        halted = _halted(evidence.injections, run.created, until)
        over = until - run.created - halted - run.timeout_s
        longest = max(longest, over)
        if over > MARGIN_S:
            late.append(f"{_name(run)} is {run.status} {over:.0f} s beyond its time")
    numbers = f"at most {longest:.1f} s beyond its time, {MARGIN_S:g} s are allowed"
    return Verdict("nothing lives beyond its time", numbers, late)


def no_call_lost(evidence: Evidence) -> Verdict:
    """Each call that is done in a journal reached its tool, and each call that reached a tool is in
    a journal. One that only reads is made before its entry is stored: it may be missing if the run
    was ended while its executor was dead, before another one made it again."""
    done, wrong, uncertain, unseen = 0, list[str](), Counter[str](), Counter[str]()
    for run in evidence.runs:
        made, journaled = _made(evidence, run), Counter(call.call for call in run.calls)
        known = Counter(call.call for call in run.calls if call.end == "ok")
        done += known.total()
        wrong += [f"{_name(run)}: journaled but not made: {call}" for call in known - made]
        missing = [call for call in made if call not in journaled]
        lost = [
            call
            for call in missing
            if run.kind not in OVERTAKING_ENDS or _tool_of_key(call) in WRITES
        ]
        unseen[run.kind or run.status] += len(missing) - len(lost)
        wrong += [
            f"{_name(run)}: ended as {_end(run)}, made but not in the journal: {call}"
            for call in lost
        ]
        if any(made[call.call] and is_uncertain(call.end) for call in run.calls):
            uncertain[run.kind or run.status] += 1
            if run.is_final and run.kind not in UNCERTAIN_ENDS:
                wrong.append(f"{_name(run)}: ended as {_end(run)} with a call of unknown outcome")
    total = sum(made.total() for made in evidence.made.values())
    numbers = (
        f"{total} calls reached tools, {done} are journaled as done; "
        f"runs with an effect of unknown outcome: {_counts(uncertain)}; "
        f"reads that ended runs do not list: {_counts(+unseen)}"
    )
    return Verdict("calls = journal", numbers, wrong)


def no_call_repeated(evidence: Evidence) -> Verdict:
    """No call that may not be repeated reached its tool twice."""
    wrong, once, again = list[str](), 0, 0
    for name, made in evidence.made.items():
        for call, times in made.items():
            if _tool_of_key(call) not in ONCE:
                again += times - 1
                continue
            once += 1
            if times > 1:
                wrong.append(f"{name}: made {times} times: {call}")
    numbers = f"{once} calls that may not be repeated; {again} repetitions of calls that may"
    return Verdict("nothing repeated", numbers, wrong)


def no_effect_denied(evidence: Evidence) -> Verdict:
    """No call that took effect is reported as failed."""
    wrong = [
        f"{_name(run)}: took effect, reported as {call.end}: {call.call}"
        for run in evidence.runs
        for call in run.calls
        if _tool(call.tool) in WRITES
        and _tool(call.tool) != "refuse"
        and call.end != "ok"
        and not is_uncertain(call.end)
        and _made(evidence, run)[call.call]
    ]
    writes = sum(
        times
        for made in evidence.made.values()
        for call, times in made.items()
        if _tool_of_key(call) in WRITES
    )
    return Verdict("no effect is denied", f"{writes} effects", wrong)


def counts_are_runs(evidence: Evidence) -> Verdict:
    """A capability's use counts every ended run of it, once."""
    wrong = [
        f"{use.capability}: {use.runs} runs ended, {use.counted} are counted, {use.traces} traces "
        "are stored"
        for use in evidence.uses
        if not use.counted == use.traces == use.runs
    ]
    counted, runs = (sum(column) for column in _columns(evidence))
    return Verdict(
        "counts = runs", f"{counted} uses of {len(evidence.uses)} capabilities, {runs} runs", wrong
    )


def no_needless_failure(evidence: Evidence) -> Verdict:
    """Each failed run has a cause: its caller, its approver, a poisoned journal, a call of
    unknowable outcome, or faults that took most of its time."""
    failed = [run for run in evidence.runs if run.status == "error" and not run.fits]
    causes = Counter[str]()
    needless = list[str]()
    for run in failed:
        cause = cause_of(run, evidence.injections)
        causes[f"{run.kind} ({cause or 'no cause'})"] += 1
        if cause is None:
            near = ", ".join(one.fault.name for one in during(run, evidence.injections)) or "none"
            lost = time_lost(run, evidence.injections)
            needless.append(
                f"{_name(run)}: {run.kind}: {run.message} [faults meanwhile: {near}, which took "
                f"{lost:.1f} s of its {run.timeout_s:g}]"
            )
    numbers = f"{len(failed)} of {len(evidence.runs)} failed: {_counts(causes)}"
    return Verdict("no needless failure", numbers, needless)


def ends_as_programs_say(evidence: Evidence) -> Verdict:
    """A successful run has the program's expected result."""
    well = [run for run in evidence.runs if run.status == "success"]
    wrong = [f"{_name(run)} has another result" for run in well if not run.fits]
    return Verdict("results are as undisturbed", f"{len(well)} successes", wrong)


def no_wrong_answer(evidence: Evidence) -> Verdict:
    """Callers get answers, requests to retry, or no connection; never an error of the gateway."""
    wrong = [f"{_name(run)}: {answer}" for run in evidence.runs for answer in run.asked.wrong]
    unheard = sum(not run.asked.accepted for run in evidence.runs)
    numbers = f"{len(wrong)} wrong answers; {unheard} requests never accepted"
    return Verdict("callers get proper answers", numbers, wrong)


def nothing_unreadable(evidence: Evidence) -> Verdict:
    """All messages that the stack stored can be read."""
    return Verdict(
        "what is stored can be read", f"{len(evidence.unreadable)} messages", evidence.unreadable
    )


def nothing_given_up(evidence: Evidence) -> Verdict:
    """No message is dead-lettered except those that the campaign poisoned."""
    return Verdict("no message is given up", f"{len(evidence.dead)} messages", evidence.dead)


def healthy_in_the_end(evidence: Evidence) -> Verdict:
    """Every part is healthy, and was so within the limit after each fault; a last run succeeds."""
    wrong = [f"{part}: {problem}" for part, problem in evidence.health.items()]
    wrong += [
        f"not healthy within the bound after {one.fault.name}: {one.note}"
        for one in evidence.injections
        if one.recovered is None
    ]
    slowest = max(
        (one.recovered - one.ended for one in evidence.injections if one.recovered), default=0.0
    )
    numbers = f"{len(evidence.injections)} faults, the slowest recovery took {slowest:.1f} s"
    return Verdict("healthy in the end", numbers, wrong)


def _halted(injections: Sequence[Injection], since: float, until: float) -> float:
    """Seconds of a span without a part that every workflow needs."""
    return sum(
        one.overlaps(since, until)
        for one in injections
        if one.fault.target in HALTING or one.fault.kind == "disk"
    )


def _columns(evidence: Evidence) -> tuple[list[int], list[int]]:
    return [use.counted for use in evidence.uses], [use.runs for use in evidence.uses]


def _made(evidence: Evidence, run: Run) -> Counter[str]:
    return evidence.made.get(run.asked.run, Counter())


def _tool(tool_id: str) -> str:
    return tool_id.partition(":")[2]


def _tool_of_key(call: str) -> str:
    """The tool of a call's key, see `evidence.key_of_call`."""
    return _tool(call.partition(" ")[0])


def _name(run: Run) -> str:
    return f"{run.asked.run} ({run.asked.program})"


def _end(run: Run) -> tuple[str, str]:
    return run.status, run.kind


def _counts(counter: Counter[str]) -> str:
    told = (f"{count} {name}" for name, count in sorted(counter.items()))
    return ", ".join(told) or "none"


def violations(found: Sequence[Verdict]) -> list[str]:
    """All violations, each with its invariant."""
    return list(
        chain.from_iterable(
            (f"{one.invariant}: {violation}" for violation in one.violations) for one in found
        )
    )
