"""The report of a campaign, as Markdown."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median

from tests.faults.campaign import Outcome
from tests.faults.records import Injection
from tests.faults.verdict import Verdict, cause_of

MOST_TOLD = 40
"""Violations of one invariant that are listed individually."""


def report_of(outcome: Outcome) -> str:
    """The whole report."""
    return (
        "\n\n".join(
            [
                "# Fault campaign",
                _introduction(outcome),
                _invariants(outcome.verdicts),
                *(_violations(one) for one in outcome.verdicts if not one.passed),
                _faults(outcome.evidence.injections),
                _load(outcome),
                _failures(outcome),
            ]
        )
        + "\n"
    )


def _introduction(outcome: Outcome) -> str:
    passed = not outcome.violations
    lines = [
        "Written by `make faults`: the whole embedded stack under a constant mixed load while its "
        "parts are killed, frozen, stopped, restarted and sent forged messages.",
        "",
        f"- result: **{'PASS' if passed else 'FAIL'}**",
        f"- begun: {outcome.began:%Y-%m-%d %H:%M} UTC, took {outcome.seconds / 60:.1f} minutes",
        f"- commit: `{outcome.commit}`",
        f"- seed: {outcome.seed}",
        f"- machine: {outcome.machine}",
        f"- faults: {len(outcome.evidence.injections)}",
        f"- skipped: {'; '.join(outcome.left_out) or 'nothing'}",
    ]
    return "\n".join(lines)


def _invariants(verdicts: Sequence[Verdict]) -> str:
    rows = [
        f"| {one.invariant} | {'PASS' if one.passed else 'FAIL'} | {one.numbers} |"
        for one in verdicts
    ]
    return "\n".join(
        ["## Invariants", "", "| invariant | | numbers |", "| --- | --- | --- |", *rows]
    )


def _violations(verdict: Verdict) -> str:
    listed = [f"- {_in_line(violation)}" for violation in verdict.violations[:MOST_TOLD]]
    more = len(verdict.violations) - len(listed)
    rest = [f"- … and {more} more"] if more else []
    return "\n".join([f"### Violations: {verdict.invariant}", "", *listed, *rest])


def _faults(injections: Sequence[Injection]) -> str:
    by_name = defaultdict[str, list[Injection]](list)
    for one in injections:
        by_name[one.fault.name].append(one)
    rows = [_fault_row(name, by_name[name]) for name in sorted(by_name)]
    heads = "| fault | times | recovery, median (s) | recovery, longest (s) | not done |"
    return "\n".join(["## Faults", "", heads, "| --- | ---: | ---: | ---: | ---: |", *rows])


def _fault_row(name: str, done: Sequence[Injection]) -> str:
    took = [one.recovered - one.ended for one in done if one.recovered is not None]
    times = f"{median(took):.1f} | {max(took):.1f}" if took else "- | -"
    failed = sum(one.note.startswith("not done") for one in done)
    return f"| {name} | {len(done)} | {times} | {failed} |"


def _load(outcome: Outcome) -> str:
    runs = Counter(run.asked.program for run in outcome.evidence.runs)
    well = Counter(run.asked.program for run in outcome.evidence.runs if run.fits)
    rows = [f"| {program} | {runs[program]} | {well[program]} |" for program in sorted(runs)]
    refused = ", ".join(f"{how} ({count})" for how, count in sorted(outcome.refused.items()))
    return "\n".join(
        [
            "## Load",
            "",
            "| program | runs | ended as undisturbed |",
            "| --- | ---: | ---: |",
            *rows,
            "",
            f"Requests to be sent again: {refused or 'none'}.",
        ]
    )


def _failures(outcome: Outcome) -> str:
    evidence = outcome.evidence
    failed = [run for run in evidence.runs if run.status == "error" and not run.fits]
    counts = Counter(
        (run.kind, cause_of(run, evidence.injections) or "**no cause**") for run in failed
    )
    rows = [f"| {kind} | {cause} | {counts[kind, cause]} |" for kind, cause in sorted(counts)]
    heads = "| kind | cause | runs |"
    return "\n".join(["## Failures", "", heads, "| --- | --- | ---: |", *rows])


def _in_line(text: str) -> str:
    return " ".join(text.split())[:600]
