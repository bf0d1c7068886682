"""Input that a tool's server asks for while its direct call is a task: the client that polls the
task finds the requests there, and answers them at any gateway."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

from typing_extensions import override

from pml_common.bus.errors import BusError
from pml_common.contracts.tool import JsonObject
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.mcp_tasks import INPUT
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import ClientRefused, ClientSide, OpenInputs

Runs = Callable[[Workflow], Awaitable[bool]]

ANSWER_WITHIN_S: Final = 600.0
"""Time for a person to answer."""

_POLL_EVERY_S: Final = 0.5
_INTERNAL_ERROR: Final = -32603
_REQUEST_TIMEOUT: Final = -32001


class NoInput(Exception):
    """The requests are not answered in time, or no more, as the workflow has `ended`."""

    def __init__(self, why: str, *, ended: bool) -> None:
        super().__init__(why)
        self.ended = ended


@dataclass(frozen=True)
class TaskInputs:
    """Asks the clients of tasks. Answers are looked for twice a second, as their client polls."""

    store: OpenInputs
    workflows: WorkflowService
    now: Callable[[], datetime]
    _asked: dict[UUID, dict[str, JsonObject]] = field(
        default_factory=dict[UUID, dict[str, JsonObject]]
    )

    async def ask(
        self,
        workflow: Workflow,
        requests: Mapping[str, JsonObject],
        within_s: float,
        runs: Runs,
    ) -> dict[str, JsonObject]:
        """Return the answers to requests that are asked together. Raises NoInput, BusError and
        StorageUnavailable."""
        keys = {f"{INPUT}{uuid4().hex}": name for name in requests}
        asked = self._asked.setdefault(workflow.workflow_id, {})
        asked.update({key: requests[name] for key, name in keys.items()})
        try:
            await self._expect_end(workflow, within_s)
            await self._show(workflow, within_s)
            found = await self._answers(workflow, keys, within_s, runs)
        finally:
            for key in keys:
                del asked[key]
            if not asked:
                del self._asked[workflow.workflow_id]
            with suppress(BusError):  # it expires
                await self._show(workflow, within_s)
        return {name: found[key] for key, name in keys.items()}

    async def _answers(
        self, workflow: Workflow, keys: Mapping[str, str], within_s: float, runs: Runs
    ) -> Mapping[str, JsonObject]:
        until = _now() + within_s
        while True:
            found = await self.store.answers(workflow.scope, workflow.workflow_id, keys)
            if found.keys() == keys.keys():
                return found
            if _now() >= until:
                raise NoInput(f"its client did not answer within {within_s:g} s", ended=False)
            if not await runs(workflow):
                raise NoInput("its workflow has ended", ended=True)
            await asyncio.sleep(_POLL_EVERY_S)

    async def _show(self, workflow: Workflow, within_s: float) -> None:
        asked = self._asked.get(workflow.workflow_id, {})
        await self.store.open(workflow.scope, workflow.workflow_id, asked, within_s)

    async def _expect_end(self, workflow: Workflow, within_s: float) -> None:
        """Have nobody take the workflow for lost while its client may answer."""
        later = timedelta(seconds=within_s + workflow.timeout_s) + self.workflows.rules.patience
        due_at = self.now() + later

        def step(stored: Workflow) -> tuple[Workflow, tuple[()]]:
            if stored.state != "running" or stored.due_at is None:
                return stored, ()
            return replace(stored, due_at=max(stored.due_at, due_at)), ()

        await self.workflows.store.change(workflow.scope, workflow.workflow_id, step)


class PolledClient(ClientSide):
    """The client of a direct call that may become a task; it is asked once the call is one."""

    def __init__(
        self, client: ClientSide, inputs: TaskInputs, workflow: Workflow, runs: Runs
    ) -> None:
        self._client = client
        self._inputs = inputs
        self._workflow = workflow
        self._runs = runs
        self._polls = asyncio.Event()
        self.is_answered = False

    @property
    @override
    def capabilities(self) -> JsonObject:
        return self._client.capabilities

    @property
    @override
    def takes_requests(self) -> bool:
        return True

    def polls(self) -> bool:
        """Whether the call is a task; otherwise it is answered now, and becomes none."""
        self.is_answered = not self._polls.is_set()
        return not self.is_answered

    def begin(self) -> None:
        """The call is answered with its task."""
        self._polls.set()

    async def answers(self, requests: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
        """Return the client's answers to requests that are asked together. Raises as TaskInputs."""
        return await self._inputs.ask(self._workflow, requests, ANSWER_WITHIN_S, self._runs)

    @override
    async def request(self, method: str, params: JsonObject, timeout_s: float) -> JsonObject:
        try:
            async with asyncio.timeout(timeout_s):
                await self._polls.wait()
            asked: JsonObject = {"method": method, "params": params}
            found = await self._inputs.ask(self._workflow, {"": asked}, timeout_s, self._runs)
        except (NoInput, TimeoutError) as error:
            raise ClientRefused(_REQUEST_TIMEOUT, f"{error}") from error
        except (BusError, StorageUnavailable) as error:
            raise ClientRefused(_INTERNAL_ERROR, f"the client cannot be asked: {error}") from error
        return found[""]


def _now() -> float:
    return asyncio.get_running_loop().time()
