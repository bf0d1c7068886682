"""The embedded stack with recording tool servers. One program at a time runs on each lane, so that
calls at the lane's server belong to it."""

import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import httpx2

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.approver import approver_headers
from pml_local.composition import StackOptions
from pml_local.ports import free_port
from pml_local.services import ServiceSpec, pml_services
from pml_local.stack import Stack, embedded_stack
from tests.binding.expected import Json
from tests.binding.library import LIBRARY
from tests.binding.oracle import Arrived

HERE = Path(__file__).parent
WITHIN_S = PATIENCE_S
LANE = "$T"
"""Placeholder in a program: the name of the lane's tool server."""

ASKED = ("write", "send", "query")
DENIED = ("erase",)


class Unanswered(AssertionError):
    """The stack gave an answer that no caller should get."""


@dataclass(frozen=True)
class Lane:
    """A tool server, named `name`."""

    name: str
    record: Path

    def text(self, template: str) -> str:
        """Adapt a program to this lane."""
        return template.replace(LANE, self.name)

    def arrived(self) -> list[Arrived]:
        """Every call so far, in order."""
        if not self.record.exists():
            return []
        lines = map(json.loads, self.record.read_text(encoding="utf-8").splitlines())
        return [Arrived(f"{self.name}:{one['tool']}", one["args"], one["result"]) for one in lines]

    def is_bound(self, tool: str) -> bool:
        """Whether a call of this tool needs approval."""
        return tool.partition(":")[2] in (*ASKED, *DENIED)


_LEARNED: Final = {
    **dict.fromkeys(("path", "to", "from", "text", "value"), "/learned"),
    "paths": ["/learned"],
}
"""Arguments with which each program of the library succeeds: only then it gets its name."""


@dataclass(frozen=True)
class Stage:
    """The stack with its lanes."""

    stack: Stack
    http: httpx2.AsyncClient
    lanes: Sequence[Lane]

    async def execute(self, **request: object) -> Json:
        """POST /api/execute, until an approval is needed or the run ends."""
        return _told(await self.http.post("/api/execute", json={"fresh": True, **request}))

    async def decide(self, workflow: str, approval: str, decision: str) -> Json:
        """Decide an approval, and wait for the next one or the end."""
        body = {"decision": decision, "approval_id": approval, "wait": True}
        headers = approver_headers(self.stack.approver_key)
        path = f"/api/workflows/{workflow}/approval"
        return _told(await self.http.post(path, json=body, headers=headers))

    async def approval(self, workflow: str) -> Json:
        """GET /api/workflows/{id}/approval: all calls, with whole values."""
        return _told(await self.http.get(f"/api/workflows/{workflow}/approval"))

    async def workflow(self, workflow: str) -> Json:
        """GET /api/workflows/{id}."""
        return _told(await self.http.get(f"/api/workflows/{workflow}"))

    async def learn(self, lane: Lane) -> None:
        """Learn the library's capabilities under this lane's namespace."""
        for name, code in LIBRARY.items():
            full = f"{lane.name}:{name}"
            answer = await self.execute(code=lane.text(code), name=full, args=_LEARNED)
            if answer["status"] == "approval_required":
                approval = answer["approval"]["id"]
                answer = await self.decide(answer["workflow_id"], approval, "approve")
            assert answer["status"] == "success", answer
            await eventually(lambda full=full: self._is_known(full), within=WITHIN_S)

    async def _is_known(self, capability: str) -> bool:
        return (await self.http.get(f"/api/capabilities/{capability}")).is_success


def _told(answer: httpx2.Response) -> Json:
    if not answer.is_success:
        raise Unanswered(f"{answer.request.url}: {answer.status_code} {answer.text[:500]}")
    return answer.json()


@asynccontextmanager
async def stage(home: Path, *, lanes: int = 3, lying: bool = False) -> AsyncGenerator[Stage]:
    """Run the stack; `lying`: its analyzer lies about programs that request it."""
    folder = home / "binding"
    folder.mkdir(parents=True)
    made = [Lane(f"t{number}", folder / f"t{number}.jsonl") for number in range(lanes)]
    options = StackOptions(
        home=home / "data",
        gateway_port=free_port(),
        mcp_servers=_servers(folder, made),
        env={"PML_GATEWAY_POLICY_FILE": str(_policy(folder))},
        services=[_lying(one) if lying else one for one in pml_services()],
    )
    async with (
        embedded_stack(options) as stack,
        httpx2.AsyncClient(base_url=stack.url, timeout=2 * WITHIN_S) as http,
    ):
        ready = Stage(stack, http, made)
        for lane in made:
            await eventually(lambda lane=lane: _is_listed(http, lane), within=WITHIN_S)
        for lane in made:
            await ready.learn(lane)
        yield ready


def _servers(folder: Path, lanes: Sequence[Lane]) -> Path:
    program = str(HERE / "recording_server.py")
    servers = {
        lane.name: {
            "command": sys.executable,
            "args": [program, str(lane.record)],
            "trust": "hints",
        }
        for lane in lanes
    }
    file = folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return file


def _policy(folder: Path) -> Path:
    verdicts = dict.fromkeys(DENIED, "deny") | dict.fromkeys(ASKED, "ask")
    rules = [{"pattern": f"*:{tool}", "verdict": verdict} for tool, verdict in verdicts.items()]
    rules.append({"pattern": "t*", "verdict": "allow"})
    file = folder / "policy.json"
    file.write_text(json.dumps({"rules": rules}), encoding="utf-8")
    return file


def _lying(service: ServiceSpec) -> ServiceSpec:
    if service.name != "analyzer":
        return service
    argv = (sys.executable, "-m", "tests.binding.lying_analyzer")
    return replace(service, argv=argv, env={**service.env, "PYTHONPATH": str(HERE.parents[1])})


async def _is_listed(http: httpx2.AsyncClient, lane: Lane) -> bool:
    """Whether the registry, which gets them after the gateway, has listed the tools."""
    question = {"intent": f"records that it should read {lane.name}", "type": "tool", "limit": 50}
    found = await http.post("/api/discover", json=question)
    return f"{lane.name}:read" in {hit["id"] for hit in found.json().get("hits", ())}
