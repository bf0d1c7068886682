"""Try generated programs, and show counterexamples, minimised.

`uv run python -m services.analyzer.tests.generated --programs 50000 --seed 1`; exits with 1 when
there are any.
"""

import argparse
import re
import sys
from collections.abc import Callable
from time import perf_counter

from services.analyzer.tests.generated.programs import program
from services.analyzer.tests.generated.text import render
from services.analyzer.tests.generated.trial import (
    UNCLEAR,
    generate,
    tried,
    written,
)
from services.analyzer.tests.support.recorder import Recorder, run

_BATCH = 2_000


def main() -> int:
    """Try batches, each with a seed of its own."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--programs", type=int, default=_BATCH)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--show", type=int, default=5, help="counterexamples to make small")
    told = asked.parse_args()
    began, wrong, unclear, steps = perf_counter(), 0, 0, 0
    for number, at in enumerate(range(0, told.programs, _BATCH)):
        made = generate(min(_BATCH, told.programs - at), seed_=told.seed * 1_000 + number)
        trials = tried([written(choices) for choices in made], run)
        steps += sum(trial.steps for trial in trials)
        for choices, trial in zip(made, trials, strict=True):
            if trial.complaint in UNCLEAR:
                unclear += 1
            elif trial.complaint is not None:
                wrong += 1
                if wrong <= told.show:
                    _show(choices)
        _say(
            f"{at + len(made):>6} programs, {steps} steps, {wrong} wrong, {unclear} unclear,"
            f" {perf_counter() - began:.0f} s"
        )
    return 1 if wrong else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _show(choices: bytes) -> None:
    with Recorder() as recorder:

        def complaint(candidate: bytes) -> str | None:
            return tried([written(candidate)], recorder.run)[0].complaint

        kind = _kind(complaint(choices))
        least = smallest(choices, lambda candidate: _kind(complaint(candidate)) == kind)
        _say(f"--- {complaint(least)}\n{render(program(least))}\n")


def _kind(complaint: str | None) -> str:
    """Return the common part of complaints about the same defect."""
    return re.sub(r"after .* no way|\d.*|:.*", "", complaint or "")


def smallest(choices: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """Return fewer and smaller choices with which it still fails."""
    before = None
    while choices != before:
        before = choices
        for size in (128, 64, 32, 16, 8, 4, 2, 1):
            at = 0
            while at < len(choices):
                rest = choices[at + size :]
                for middle in (b"", bytes(len(choices[at : at + size]))):
                    candidate = choices[:at] + middle + rest
                    if candidate != choices and fails(candidate):
                        choices = candidate
                        break
                else:
                    at += size
                    continue
                at += len(middle)
    return choices


if __name__ == "__main__":
    sys.exit(main())
