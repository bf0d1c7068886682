"""A caller who agrees to whatever is asked, and asks again where the gateway died."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

import httpx2

from pml_common.contracts.tool import JsonObject

WITHIN_S = 60.0
AGAIN_AFTER_S = 0.2

Answer = dict[str, object]


Meanwhile = Callable[[int], Awaitable[None]]
"""What happens before each decision, the first being number 1."""


async def nothing(question: int) -> None:
    """Decide at once."""


class LostDecision(AssertionError):
    """Somebody is asked again what was decided."""


@dataclass(frozen=True)
class Caller:
    """Sends programs of one caller and decides for them as a person would."""

    http: httpx2.AsyncClient
    meanwhile: Meanwhile = nothing
    approver: Mapping[str, str] = field(default_factory=dict[str, str])
    """The headers of a request that decides."""
    repeats: bool = False
    """Decides again where no answer came: the decision may not have been heard."""

    async def execute(self, code: str, run: str, args: JsonObject, **more: str) -> Answer:
        """The end of a run, without what differs from run to run; `asked` counts the questions.
        Raises LostDecision, TimeoutError."""
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
                body = await self._agree(body["workflowId"], approval, request)
        answer = {name: body.get(name) for name in ("status", "result", "error")}
        return answer | {"asked": len(decided)}

    async def _executed(self, request: Mapping[str, object]) -> Answer:
        """How it stands: asked again under the same key, it is the same run."""
        while True:
            try:
                answer = await self.http.post("/api/execute", json=request)
            except httpx2.TransportError:
                await asyncio.sleep(AGAIN_AFTER_S)
                continue
            assert answer.is_success or answer.is_server_error, answer.text
            body: Answer = answer.json()
            if answer.is_success and body["status"] != "running":
                return body
            await asyncio.sleep(AGAIN_AFTER_S)

    async def _agree(
        self, workflow: object, approval: object, request: Mapping[str, object]
    ) -> Answer:
        """Decide once; if the gateway dies meanwhile, see how it stands."""
        body = {"decision": "approve", "approval_id": approval, "wait": True}
        try:
            path = f"/api/workflows/{workflow}/approval"
            answer = await self.http.post(path, json=body, headers=self.approver)
        except httpx2.TransportError:
            return await self._executed(request)
        assert answer.is_success, answer.text
        return answer.json()
