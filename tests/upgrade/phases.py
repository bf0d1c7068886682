"""The phases of an upgrade: who is old and who is new, and what is tried in each."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.catalog import SERVICES
from tests.upgrade.load import Load, Outcome
from tests.upgrade.mixed_stack import MixedStack, Side, everywhere

RUNS = 12
LEARNED_WITHIN_S = PATIENCE_S


@dataclass(frozen=True)
class Phase:
    """One mix of revisions. With `migrates` the new migrations are applied first, under load; with
    `beside` each service has a second process, of the other revision."""

    name: str
    sides: Mapping[str, Side]
    migrates: bool = False
    beside: bool = False


@dataclass(frozen=True)
class Result:
    """A phase and what happened in it; `dead` are the messages that a service gave up."""

    phase: Phase
    outcome: Outcome = field(default_factory=Outcome)
    dead: int = 0

    @property
    def works(self) -> bool:
        """Whether every run and approval ended as it had to, and no message was given up."""
        return not self.outcome.wrong and not self.dead


def all_phases() -> Sequence[Phase]:
    """Return the phases in order: an upgrade service by service, both at once, and the way back."""
    old, new = everywhere("old"), everywhere("new")
    return [
        Phase("all old, on the old schema", old),
        Phase("all old, on the new schema", old, migrates=True),
        *(Phase(f"{service} new, others old", {**old, service: "new"}) for service in SERVICES),
        Phase("old and new of each", old, beside=True),
        *(Phase(f"{service} old, others new", {**new, service: "old"}) for service in SERVICES),
        Phase("all new", new),
        Phase("all old again, on the new schema", old),
        Phase("all new again", new),
    ]


async def go_through(
    site: MixedStack, phases: Sequence[Phase], say: Callable[[str], None]
) -> list[Result]:
    """Go through the phases on one stack; approvals asked for in one are decided in the next."""
    load, results = Load(site), list[Result]()
    await load.learn()
    for phase in phases:
        load.outcome, before = Outcome(), await site.dead_letters()
        try:
            await _try(site, load, phase)
        except Exception as error:  # noqa: BLE001 - a phase that breaks is a result
            load.outcome.wrong.append(f"{phase.name}: {error!r}")
        load.outcome.wrong += load.miscounted()
        results.append(Result(phase, load.outcome, await site.dead_letters() - before))
        say(line_of(results[-1]))
    load.outcome.wrong += await without_trace(load)
    return results


async def _try(site: MixedStack, load: Load, phase: Phase) -> None:
    async with load.callers():
        if phase.migrates:
            await site.migrate()
            await _restart(site)
        await site.put(phase.sides)
        await load.some(RUNS)
        await load.decide()
        await load.look_around()
    if phase.beside:
        async with _both(site) as urls, load.callers(*urls):
            await load.some(2 * RUNS)
            await load.ask()
            await load.decide()
    await load.ask()


async def _restart(site: MixedStack) -> None:
    """Restart every service as it is: it must start on what it finds."""
    for service in SERVICES:
        await site.stack.restart(service)


@asynccontextmanager
async def _both(site: MixedStack) -> AsyncGenerator[Sequence[str]]:
    async with site.beside(everywhere("new")) as url:
        yield (site.stack.url, url)


async def without_trace(load: Load) -> list[str]:
    """Wait for the learner, and return the runs that it has no trace of."""
    missing = set(load.succeeded)

    async def none() -> bool:
        for run in list(missing):
            path = f"/api/workflows/{load.workflows[run]}/trace"
            answer = await load.site.http.get(path)
            if answer.is_success and answer.json().get("traces"):
                missing.discard(run)
        return not missing

    try:
        await eventually(none, within=LEARNED_WITHIN_S)
    except AssertionError:
        return [f"{run}: it ended, but has no trace" for run in sorted(missing)]
    return []


def line_of(result: Result) -> str:
    """A row of the report."""
    verdict = "works" if result.works else "BREAKS"
    outcome = result.outcome
    return (
        f"| {result.phase.name} | {outcome.runs} | {outcome.decided} | {len(outcome.wrong)} "
        f"| {result.dead} | {verdict} |"
    )


def report_of(results: Sequence[Result], base: str) -> str:
    """The report, in Markdown, with what was wrong."""
    head = (
        f"# Upgrade from {base}\n"
        f"`make upgrade-test`: {RUNS} runs or more in each phase on one embedded stack, some under "
        "way while services are replaced. What waits for approval in one phase is approved in "
        "the next. Each run ends with its result, makes each call once and leaves a trace.\n\n"
        "| phase | runs | of them approved | wrong | dead letters | verdict |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    wrong = [
        f"- {each.phase.name}: {problem}" for each in results for problem in each.outcome.wrong
    ]
    return "\n".join([head, *map(line_of, results), *(["", *wrong] if wrong else [])])
