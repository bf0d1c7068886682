"""The caller's end of a call: progress, questions, cancellation."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from pml_common.contracts.gateway import DecidedThrough
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.approval_form import ApprovalForm, FormAnswer, GivenAnswer
from pml_gateway.domain.api.log_levels import LogLevel


class Asker(Protocol):
    """Asks the user of a call's client to decide an approval. `given` is the answer that the call
    carries to a form that an earlier one returned; a decision that is made so came `through`
    this way."""

    given: GivenAnswer | None
    through: DecidedThrough

    async def ask(self, form: ApprovalForm) -> FormAnswer | None:
        """Show the form and return the user's answer; None where the client gives none. Raises
        InputNeeded where the call has to be answered with the form."""
        ...


class InputNeeded(Exception):
    """The call is to be answered with this form, and made again with the user's answer."""

    def __init__(self, form: ApprovalForm) -> None:
        super().__init__(f"workflow {form.asked.workflow_id} needs an answer to a form")
        self.form = form


async def _is_never_gone() -> bool:
    return False


Report = Callable[[int, int, str], Awaitable[None]]
"""Tells a caller of progress: the calls that a run has reached, their number, and a sentence."""


@dataclass(frozen=True)
class ToolProgress:
    """Progress of a tool's call, in numbers of its server."""

    tool_id: str
    progress: float
    total: float | None
    message: str | None


@dataclass(frozen=True)
class LogMessage:
    """A log message of an MCP server, with the parameters of its notification to our clients."""

    level: LogLevel
    params: JsonObject


class LogTaker(Protocol):
    """Takes the log messages that servers send during a call, for its client."""

    @property
    def level(self) -> LogLevel:
        """The least level that the client wants."""
        ...

    def take(self, message: LogMessage) -> None:
        """Have a message sent, if the client wants it."""
        ...


class ClientRefused(Exception):
    """The MCP client of a call gave no result: it erred, cannot answer, is gone, or did not answer
    in time. `code` is JSON-RPC's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ClientSide(Protocol):
    """The MCP client that waits for the answer of a call."""

    @property
    def capabilities(self) -> JsonObject:
        """The capabilities that it declared."""
        ...

    @property
    def takes_requests(self) -> bool:
        """Whether it can be sent requests while it waits."""
        ...

    async def request(self, method: str, params: JsonObject, timeout_s: float) -> JsonObject:
        """Send the client an MCP request and return its result. Raises ClientRefused."""
        ...


@dataclass(frozen=True)
class ServerInputs:
    """Answers that a call carries to what its tool's server asked for in answer to an earlier one,
    as MCP has them, and that server's state."""

    responses: JsonObject | None = None
    state: str | None = None


@dataclass(frozen=True)
class CallerSide:
    """The caller's end of a call. An execution is answered `running` by `answer_by` (event loop
    time), if it is given, at the latest. `is_gone` tells whether the answer would reach nobody, and
    `withdrawn`, where the call is cancelled, whether its caller wants the workflow stopped. Through
    `client`, if it is an MCP client that said what it can do, it is asked while it waits. `asker`
    asks its user to decide an approval, where the client can do that. `relay` takes the progress of
    tools that are called meanwhile, `logs` what their servers log. `as_task`: the client polls
    what is not done by then. With `inputs`, a call of a tool can be answered with what its server
    asks for, to be made again with the answers; else `client` is asked meanwhile."""

    answer_by: float | None = None
    report: Report | None = None
    relay: Callable[[ToolProgress], None] | None = None
    logs: LogTaker | None = None
    inputs: ServerInputs | None = None
    is_gone: Callable[[], Awaitable[bool]] = _is_never_gone
    withdrawn: Callable[[], bool] = lambda: False
    client: ClientSide | None = None
    as_task: bool = False
    asker: Asker | None = None


HERE: Final = CallerSide()
"""A caller who is there until the answer."""
