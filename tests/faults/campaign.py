"""A campaign: a constant load, faults one after another, then the verdict."""

import asyncio
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from tests.faults.evidence import collected
from tests.faults.injections import Injector
from tests.faults.load import Load
from tests.faults.records import Evidence, Fault, Injection
from tests.faults.site import Site
from tests.faults.verdict import Verdict, verdicts, violations

CALLERS = 6
WARM_UP_S = 3.0
CALM_S = (0.5, 3.0)
"""Pause between two faults, with a healthy stack."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """Results of a campaign, with its date and machine."""

    seed: int
    began: datetime
    seconds: float
    commit: str
    machine: str
    evidence: Evidence
    refused: dict[str, int]
    left_out: tuple[str, ...]
    verdicts: list[Verdict]

    @property
    def violations(self) -> list[str]:
        """Descriptions of all violations."""
        return violations(self.verdicts)


async def campaign(
    site: Site,
    faults: Iterable[Fault],
    *,
    seed: int,
    seconds: float,
    left_out: tuple[str, ...] = (),
    say: Say = lambda _: None,
) -> Outcome:
    """Inject these faults under load until they are used up or the time has passed; wait until no
    run is open, and judge."""
    began = datetime.now(UTC)
    chance = Random(seed)  # noqa: S311 - to be repeated
    load = Load(site, Random(chance.random()))  # noqa: S311
    injector = Injector.on(site, Random(chance.random()))  # noqa: S311
    loading = asyncio.create_task(load.run(CALLERS))
    try:
        injections = await _injected(injector, faults, chance, began.timestamp() + seconds, say)
        load.stop()
        say("no more faults; the load ends")
        await loading
    finally:
        loading.cancel()
        await asyncio.wait([loading])
    unfit = await load.last_run()
    evidence = await collected(site, load.asked, injections)
    if unfit is not None:
        ill = {**evidence.health, "a run after the last fault": unfit}
        evidence = replace(evidence, health=ill)
    return Outcome(
        seed=seed,
        began=began,
        seconds=time.time() - began.timestamp(),
        commit=_commit(),
        machine=f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        evidence=evidence,
        refused=load.refused,
        left_out=left_out,
        verdicts=verdicts(evidence),
    )


async def _injected(
    injector: Injector, faults: Iterable[Fault], chance: Random, until: float, say: Say
) -> list[Injection]:
    injections = list[Injection]()
    await asyncio.sleep(WARM_UP_S)  # waits: pace of the faults
    for fault in faults:
        if time.time() >= until:
            break
        done = await injector.inject(fault)
        injections.append(done)
        took = "not healthy" if done.recovered is None else f"{done.recovered - done.began:.1f} s"
        say(f"{len(injections):4d} {fault.name} ({took}) {done.note}")
        await asyncio.sleep(chance.uniform(*CALM_S))  # waits: pace of the faults
    return injections


def _commit() -> str:
    """The tested commit, marked if there are uncommitted changes."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() or "unknown"
