"""Accepted programs load like in the sandbox: generated programs, and those of the tests, damaged
to various degrees.

`python -m services.analyzer.tests.integration.test_accepted_compiles COUNT [SEED]` tries more.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from pml_analysis.analysis import Analysis, analyze
from pml_analysis.check_results import CompileError
from pml_analyzer.adapters.deno_compiler import deno_compiler
from pml_analyzer.adapters.worker_pool import WorkerLimits
from pml_common.contracts.decision import Policy
from pml_common.contracts.scope import Scope
from services.analyzer.tests.generated.trial import generate, written
from services.analyzer.tests.support.library import KNOWN
from services.analyzer.tests.support.mutations import snippets, texts
from services.analyzer.tests.support.programs import TOOLS
from services.analyzer.tests.support.recorder import DENO, run

pytestmark = pytest.mark.integration

SCOPE = Scope(org="acme", project="webapp")
COUNT, SEED = 4 * settings().max_examples, 8
PATIENT = WorkerLimits(deadline_s=60)


@dataclass(frozen=True)
class Compared:
    """A text that the analysis accepts: why it does not compile, and why it does not load."""

    code: str
    compile_error: CompileError | None
    unloaded: str | None


def drawn(count: int, seed_: int) -> list[str]:
    """Return texts that are nearly programs, and programs."""
    found: dict[str, None] = {}

    @seed(seed_)
    @given(texts(snippets(Path(__file__).parents[1])))
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    def collect(text: str) -> None:
        found[text] = None

    collect()
    return [*found, *map(written, generate(count // 5, seed_=seed_))]


async def compared(codes: Sequence[str]) -> list[Compared]:
    """Compare those of these texts that the analysis accepts."""
    taken: list[tuple[str, str, CompileError | None]] = []
    async with deno_compiler(str(DENO), PATIENT) as compiler:
        for code in codes:
            outcome = analyze(code, tools=TOOLS, policy=Policy(), capabilities=KNOWN)
            if isinstance(outcome, Analysis):
                compile_error = await compiler.compile_error(SCOPE, outcome.instrumented)
                taken.append((code, outcome.instrumented, compile_error))
    # None is run beyond its first line.
    ends = await asyncio.to_thread(run, [f"return 1;\n{{{text}\n}}" for _, text, _ in taken])
    return [
        Compared(code, compile_error, end if isinstance(end, str) else None)
        for (code, _, compile_error), end in zip(taken, ends, strict=True)
    ]


async def test_what_is_accepted_loads_and_what_does_not_compile_does_not_load() -> None:
    seen = await compared(drawn(COUNT, SEED))
    assert len(seen) > COUNT / 4
    assert [one for one in seen if one.compile_error is None and one.unloaded is not None] == []
    assert [one for one in seen if one.compile_error is not None and one.unloaded is None] == []


if __name__ == "__main__":
    everything = drawn(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else SEED)
    found = asyncio.run(compared(everything))
    misfits = [one for one in found if one.compile_error is not None]
    differing = [one for one in found if (one.compile_error is None) != (one.unloaded is None)]
    sys.stdout.write(f"{len(everything)} texts, {len(found)} taken by the analysis\n")
    sys.stdout.write(f"{len(misfits)} of these do not compile, {len(differing)} differ\n")
    for one in [*differing, *misfits[:40]]:
        sys.stdout.write(f"{one}\n")
