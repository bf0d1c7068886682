"""One bound for every wait of the tests, scaled by the speed of the machine.

A wait that ends in time costs nothing, however long its bound: a bound ends tests that hang, and
says nothing on how fast something is. `python -m libs.pml_local.tests.support.patience` prints the
factor.
"""

import os
import sys
from hashlib import sha256
from time import perf_counter

VARIABLE = "PML_SLOWNESS"
"""Holds the factor for the processes that a session starts: xdist's workers, programs of tests."""
MOST = 10.0
_ROUNDS = 100_000
_REFERENCE_S = 0.05
"""Time of the work where nothing else runs (processors of 2024)."""


def measured() -> float:
    """Time a fixed piece of work against the reference, beside all that the machine does."""
    began, digest = perf_counter(), b""
    for _ in range(_ROUNDS):
        digest = sha256(digest).digest()
    return (perf_counter() - began) / _REFERENCE_S


def factor(ratio: float) -> float:
    """Limit a ratio of times: at least 1, at most MOST, so that a hanging test still ends."""
    return min(MOST, max(1.0, ratio))


def slowness() -> float:
    """Factor of this session: measured by its first process, inherited by the others."""
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = f"{factor(measured()):.2f}"
    return factor(float(os.environ[VARIABLE]))


SLOWNESS = slowness()
PATIENCE_S = 60.0 * SLOWNESS
"""Seconds to wait for anything that should happen; several of them where much has to."""


if __name__ == "__main__":
    sys.stdout.write(f"{SLOWNESS:g}\n")
