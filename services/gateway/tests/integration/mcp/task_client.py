"""The tasks extension of an official client: it polls tasks, and has its user answer their
forms."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Literal

from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult, ElicitResult, Request, RequestParams, Result
from pydantic import ConfigDict

from pml_gateway.domain.api.mcp_tasks import EXTENSION

Json = dict[str, Any]
Answer = Callable[[Json], Awaitable[ElicitResult]]


class TaskResult(Result):
    """The answer to a call that became a task, or to `tasks/get`."""

    model_config = ConfigDict(extra="allow")

    result_type: Literal["task"] = "task"
    task_id: str


class Params(RequestParams):
    """Parameters of the requests about a task."""

    task_id: str
    input_responses: Json | None = None
    routed_as: str | None = None


class TaskRequest(Request[Params, str]):
    """A request about a task, which HTTP routes by its id."""

    name_param: ClassVar[str | None] = "taskId"


class MisroutedRequest(TaskRequest):
    """A request about a task, whose header names `routed_as`."""

    name_param = "routedAs"


class AnyResult(Result):
    """Any result."""

    model_config = ConfigDict(extra="allow")


async def ask(
    session: Any,
    method: str,
    task_id: str,
    responses: Json | None = None,
    routed_as: str | None = None,
) -> Json:
    """Send a request about a task and return its result."""
    params = Params(task_id=task_id, input_responses=responses, routed_as=routed_as)
    kind = TaskRequest if routed_as is None else MisroutedRequest
    request = kind(method=method, params=params)
    result = await session.send_request(request, AnyResult)
    return result.model_dump(by_alias=True)


class Polling(ClientExtension):
    """Polls each task until it has ended; `seen` are the states in which it was found."""

    identifier = EXTENSION

    def __init__(self, answer: Answer | None = None) -> None:
        self.seen: list[Json] = []
        self._answer = answer

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Claim the results of calls that became tasks."""
        return (ResultClaim(result_type="task", model=TaskResult, resolve=self._resolve),)

    async def _resolve(self, created: TaskResult, context: ClaimContext) -> CallToolResult:
        self.seen.append(created.model_dump(by_alias=True))
        answered: set[str] = set()
        while True:
            task = await ask(context.session, "tasks/get", created.task_id)
            self.seen.append(task)
            if task["status"] == "completed":
                return CallToolResult.model_validate(task["result"])
            assert task["status"] in ("working", "input_required"), task
            for key, request in task.get("inputRequests", {}).items():
                if key not in answered and self._answer is not None:
                    answered.add(key)
                    given = await self._answer(request)
                    responses = {key: given.model_dump(by_alias=True), "other": {}}
                    await ask(context.session, "tasks/update", created.task_id, responses)
