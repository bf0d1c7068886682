"""A running stack for the end-to-end tests."""

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import httpx2

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.approver import approver_headers
from pml_local.stack import Stack
from tests.e2e.collector import Collector

INPUT = "an answer for the gateway's mcpServers file alone"

Json = dict[str, object]


class Harness(ABC):
    """A client of a stack, its approver's key, and the folder where tools count their calls."""

    http: httpx2.AsyncClient
    folder: Path

    @property
    @abstractmethod
    def approver_key(self) -> Path:
        """The file of the approver's key."""

    @property
    def approver(self) -> dict[str, str]:
        """Headers of a decision."""
        return approver_headers(self.approver_key)

    async def execute(self, code: str, **more: object) -> Json:
        """POST /api/execute; approve if required and wait for the end."""
        answer = await self.http.post("/api/execute", json={"code": code, **more})
        assert answer.status_code == 200, answer.text
        body: Json = answer.json()
        if body["status"] == "approval_required":
            await self.approve(str(body["workflow_id"]))
            return await self.end_of(str(body["workflow_id"]))
        return body

    async def approve(self, workflow_id: str) -> None:
        """Approve the workflow's pending approval."""
        answer = await self.http.post(
            f"/api/workflows/{workflow_id}/approval",
            json={"decision": "approve"},
            headers=self.approver,
        )
        assert answer.status_code == 200, answer.text

    async def workflow(self, workflow_id: str) -> Json:
        """GET /api/workflows/{id}."""
        answer = await self.http.get(f"/api/workflows/{workflow_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def end_of(self, workflow_id: str, within: float = PATIENCE_S) -> Json:
        """Wait until the workflow has ended."""

        async def finished() -> Json | None:
            found = await self.workflow(workflow_id)
            return found if found["status"] in ("success", "error") else None

        return await eventually(finished, within=within)

    async def has_name(self, answer: Json, name: str) -> None:
        """Fail unless the run succeeded and its program has this name: at its end or, where the
        registry did not answer in time, later, as a notice says."""
        assert answer["status"] == "success", answer
        if answer.get("capability_name") is None:
            assert f"{name} is given later" in str(answer["notices"]), answer
            await eventually(lambda: self._is_given(name))
        else:
            assert answer["capability_name"] == name, answer

    async def _is_given(self, name: str) -> bool:
        return (await self.http.get("/api/dns/whois", params={"name": name})).status_code == 200

    def hold(self, n: int) -> None:
        """Let the next `step(n)` wait inside the call."""
        (self.folder / f"hold-{n}").touch()

    def release(self, n: int) -> None:
        """Let a held `step(n)` return."""
        (self.folder / f"gate-{n}").touch()

    def steps(self) -> Counter[int]:
        """Number of real calls of the tool, by number."""
        marks = self.folder / "steps.log"
        lines = marks.read_text(encoding="utf-8").split() if marks.exists() else []
        return Counter(int(line) for line in lines)


@dataclass
class StackHarness(Harness):
    """The embedded stack, and what it sent to its collector."""

    stack: Stack
    http: httpx2.AsyncClient
    folder: Path
    telemetry: Collector

    @property
    def approver_key(self) -> Path:
        """The file of the approver's key."""
        return self.stack.approver_key


async def tools_listed(http: httpx2.AsyncClient) -> bool:
    """Whether the registry, which gets them after the gateway, has listed the tools."""
    found = await http.post("/api/discover", json={"intent": "count one step", "type": "tool"})
    return "counting:step" in {hit["id"] for hit in found.json().get("hits", ())}
