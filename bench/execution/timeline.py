"""Time of one workflow, step by step, from its messages on the bus."""

import asyncio
from itertools import pairwise
from statistics import mean
from time import perf_counter

from execution.callers import Http, execute
from execution.floors import CODE
from nats.aio.client import Client
from nats.aio.msg import Msg

from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.connection import flush, subscribe
from pml_common.bus.names import prefix_of
from pml_common.contracts import catalog

_SETTLE_S = 0.1
"""Pause between workflows, so that each finds warm sandboxes and an idle stack."""

_ENDED_BY = (
    ("decide and accept", prefix_of(catalog.WORKFLOW_ACCEPTED)),
    ("run with its tool call", prefix_of(catalog.RUN_FINISHED)),
)
_LAST = "answer"


async def timeline(url: str, http: Http, workflows: int) -> dict[str, float]:
    """Mean of each step and of the whole, from request to response, in milliseconds."""
    recorded: list[tuple[str, float]] = []

    async def record(message: Msg) -> None:
        recorded.append((message.subject, perf_counter()))

    client = Client()
    await client.connect(url)
    try:
        await subscribe(client, "pml.>", record)
        await flush(client)
        rows = [await _one(http, recorded) for _ in range(workflows)]
    finally:
        await client.close()
    names = [name for name, _ in _ENDED_BY] + [_LAST]
    means = [mean(times) * 1000 for times in zip(*rows, strict=True)]
    return dict(zip([*names, "all"], [*means, sum(means)], strict=True))


async def _one(http: Http, recorded: list[tuple[str, float]]) -> list[float]:
    """Seconds of each step of one workflow."""
    await asyncio.sleep(_SETTLE_S)
    recorded.clear()
    began = perf_counter()
    await execute(http, CODE)
    ended = perf_counter()
    ends: list[float] = await eventually(lambda: _ends(recorded), within=5.0)
    return [later - earlier for earlier, later in pairwise([began, *ends, ended])]


def _ends(recorded: list[tuple[str, float]]) -> list[float]:
    """End times of all steps but the last, once all messages have arrived."""
    firsts: list[float] = []
    for _, subject in _ENDED_BY:
        at = [at for found, at in recorded if found.startswith(subject)]
        if not at:
            return []
        firsts.append(at[0])
    return firsts
