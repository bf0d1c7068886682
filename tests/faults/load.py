"""A constant mixed load: callers that run one program after another and record their answers."""

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import cast
from uuid import UUID

import httpx2

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.crashes.crash_stack import workflow_of
from tests.faults.programs import KINDS, draw, request_of
from tests.faults.records import Asked
from tests.faults.site import Site

TIMEOUT_S = 40.0
ANSWER_S = 4 * PATIENCE_S
"""Limit for a caller's requests about one run: its time, the verdict's margin, and two slow
recoveries, of which one may precede its acceptance."""
AGAIN_AFTER_S = 0.3
PAUSE_S = 0.6
DENIES = 0.2

Body = dict[str, object]


@dataclass
class Load:
    """Concurrent callers. `refused` counts the answers that requested a retry."""

    site: Site
    chance: Random
    asked: list[Asked] = field(default_factory=list[Asked])
    refused: dict[str, int] = field(default_factory=dict[str, int])
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, callers: int) -> None:
        """Run until `stop`; every run that was begun is followed to its end, or given up."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(callers):
                tasks.create_task(self._call(number, Random(self.chance.random())))  # noqa: S311

    async def last_run(self) -> str | None:
        """Run one more program, undisturbed; returns what is wrong with its end."""
        asked = Asked("last", "sequential", workflow_of("last"))
        self.asked.append(asked)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._execute(asked, self.chance)
        except TimeoutError:
            return f"it does not end within {PATIENCE_S:g} s"
        return None if asked.told == {("success", "")} else f"it ends as {asked.told}"

    def stop(self) -> None:
        """Begin no more runs."""
        self._stopping.set()

    async def _call(self, number: int, chance: Random) -> None:
        count = 0
        while not self._stopping.is_set():
            program, count = draw(chance), count + 1
            run = f"{program.replace(' ', '-')}-{number}-{count}"
            asked = Asked(run, program, workflow_of(run))
            self.asked.append(asked)
            self.site.under_way[asked.workflow_id] = run
            try:
                await self._see_through(asked, chance)
            finally:
                del self.site.under_way[asked.workflow_id]
            await asyncio.sleep(chance.random() * PAUSE_S)  # waits: pace of the load

    async def _see_through(self, asked: Asked, chance: Random) -> None:
        """Follow one run to its end; a caller that times out leaves the run to the verdict."""
        cancelling = None
        if KINDS[asked.program].cancelled:
            cancelling = asyncio.create_task(self._cancel(asked, chance.random() * 4))
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._execute(asked, chance)
        except TimeoutError:
            asked.wrong.append(f"no end within {ANSWER_S:g} s")
        finally:
            if cancelling is not None:
                cancelling.cancel()
                await asyncio.wait([cancelling])

    async def _execute(self, asked: Asked, chance: Random) -> None:
        request = request_of(asked.program, asked.run, TIMEOUT_S)
        while True:
            body = await self._post("/api/execute", request, asked)
            if body is None:
                continue
            asked.accepted = True
            match body["status"]:
                case "success" | "error":
                    asked.told.add(end_of(body))
                    return
                case "approval_required":
                    await self._decide(asked, cast("Body", body["approval"])["id"], chance)
                case _:
                    await asyncio.sleep(AGAIN_AFTER_S)  # waits: pace of the load

    async def _decide(self, asked: Asked, approval: object, chance: Random) -> None:
        """Decide as a person; a repeated approval request shows whether the decision was
        received."""
        denies = chance.random() < DENIES
        asked.denied |= denies
        decision = {"decision": "deny" if denies else "approve", "approval_id": approval}
        path = f"/api/workflows/{asked.workflow_id}/approval"
        await self._post(path, decision, asked, self.site.approver, may_conflict=True)

    async def _cancel(self, asked: Asked, after_s: float) -> None:
        await asyncio.sleep(after_s)  # waits: pace of the load
        path = f"/api/workflows/{asked.workflow_id}/cancel"

        async def cancelled() -> bool:
            asked.cancelled = True
            answer = await self._post(path, {}, asked, may_conflict=True)
            return answer is not None

        try:
            await eventually(cancelled)
        except AssertionError:
            self._refuse("no answer to a cancellation")

    async def _post(
        self,
        path: str,
        body: object,
        asked: Asked,
        headers: dict[str, str] | None = None,
        *,
        may_conflict: bool = False,
    ) -> Body | None:
        """Return the response; None, after a pause, if the request has to be repeated. With
        `may_conflict` a conflict is no error."""
        try:
            answer = await self.site.http.post(path, json=body, headers=headers)
        except httpx2.TransportError as error:
            self._refuse(type(error).__name__)
            await asyncio.sleep(AGAIN_AFTER_S)  # waits: pace of the load
            return None
        if answer.is_success:
            return answer.json()
        self._refuse(str(answer.status_code))
        expected = (503, 429, 404, 409) if may_conflict else (503, 429)
        if answer.status_code not in expected:
            asked.wrong.append(f"{path} answers {answer.status_code}: {answer.text[:200]}")
        elif answer.status_code in (503, 429) and "Retry-After" not in answer.headers:
            asked.wrong.append(f"{path} answers {answer.status_code} without Retry-After")
        await asyncio.sleep(AGAIN_AFTER_S)  # waits: pace of the load
        return {} if answer.status_code == 409 and may_conflict else None

    def _refuse(self, how: str) -> None:
        self.refused[how] = self.refused.get(how, 0) + 1


def end_of(body: Body) -> tuple[str, str]:
    """An end as in `Asked.told`: the status, and the kind of its error."""
    error = cast("Body", body.get("error") or {})
    return str(body["status"]), str(error.get("kind", ""))


def workflow_ids(asked: list[Asked]) -> dict[UUID, Asked]:
    """Every run by its workflow."""
    return {one.workflow_id: one for one in asked}
