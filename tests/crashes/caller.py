"""A caller that approves every request and retries after the gateway died."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

import httpx2

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.tool import JsonObject

WITHIN_S = PATIENCE_S
AGAIN_AFTER_S = 0.2
CONFLICT = 409
"""The status of a decision on what is decided."""

Answer = dict[str, object]


Meanwhile = Callable[[int], Awaitable[None]]
"""Hook before each decision; decisions are numbered from 1."""


async def decide_at_once(question: int) -> None:
    """Decide without delay."""


class LostDecision(AssertionError):
    """An approval already decided is requested again."""


@dataclass(frozen=True)
class Caller:
    """Sends programs of one caller and decides for them as a person would."""

    http: httpx2.AsyncClient
    meanwhile: Meanwhile = decide_at_once
    approver: Mapping[str, str] = field(default_factory=dict[str, str])
    """Headers of a decision."""
    repeats: bool = False
    """Whether to decide again without a response, or with an error of the server: the gateway may
    not have received the decision."""
    workflows: dict[str, object] = field(default_factory=dict[str, object])
    """The id of each run's workflow."""

    async def execute(self, code: str, run: str, args: JsonObject, **more: str) -> Answer:
        """Run a program and return its end without fields that differ between runs; `asked` counts
        the approvals. Raises LostDecision, TimeoutError."""
        request = {"code": code, "args": {"run": run, **args}, **more}
        request |= {"idempotency_key": run, "timeout": WITHIN_S}
        decided = dict[object, None]()
        async with asyncio.timeout(WITHIN_S):
            body = await self._executed(request)
            while body["status"] == "approval_required":
                approval = cast("Answer", body["approval"])["id"]
                if approval in decided and not self.repeats:
                    raise LostDecision(f"approval {approval} is asked for again")
                decided.setdefault(approval)
                await self.meanwhile(len(decided))
                body = await self._agree(body["workflow_id"], approval, request)
        self.workflows[run] = body["workflow_id"]
        answer = {name: body.get(name) for name in ("status", "result", "error")}
        return answer | {"asked": len(decided)}

    async def _executed(self, request: Mapping[str, object]) -> Answer:
        """Request until the run ends or needs approval; the same key is the same run."""
        while True:
            try:
                answer = await self.http.post("/api/execute", json=request)
            except httpx2.TransportError:
                await asyncio.sleep(AGAIN_AFTER_S)  # waits: pace of the caller
                continue
            assert answer.is_success or answer.is_server_error, answer.text
            if answer.is_success and (body := answer.json())["status"] != "running":
                return body
            await asyncio.sleep(AGAIN_AFTER_S)  # waits: pace of the caller

    async def _agree(
        self, workflow: object, approval: object, request: Mapping[str, object]
    ) -> Answer:
        """Decide once; if the gateway dies meanwhile, request the state."""
        body = {"decision": "approve", "approval_id": approval, "wait": True}
        try:
            path = f"/api/workflows/{workflow}/approval"
            answer = await self.http.post(path, json=body, headers=self.approver)
        except httpx2.TransportError:
            return await self._executed(request)
        if self.repeats and (answer.is_server_error or answer.status_code == CONFLICT):
            return await self._executed(request)
        assert answer.is_success, answer.text
        return answer.json()
