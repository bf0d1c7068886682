"""Elicitation (MCP): forms for the user of the client that makes a call.

From 2026-07-28 on the call is answered with the form, and made again with the answer.
"""

from typing import Any, Final

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pml_common.contracts.gateway import DecidedThrough
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.approval_form import (
    SCHEMA,
    ApprovalForm,
    FormAnswer,
    GivenAnswer,
    can_show_forms,
)
from pml_gateway.entrypoints.mcp.request_states import RequestStates
from pml_gateway.ports import Asker, Caller, InputNeeded

Context = ServerRequestContext[Any, Any]

_KEY: Final = "approval"
_LONGEST_NAME: Final = 200


class AnsweredLater(Asker):
    """Has the call answered with the form (2026-07-28)."""

    def __init__(self, through: DecidedThrough, given: GivenAnswer | None) -> None:
        self.through = through
        self.given = given

    async def ask(self, form: ApprovalForm) -> FormAnswer | None:
        """Raise InputNeeded."""
        raise InputNeeded(form)


class Asking:
    """Forms as calls are answered with them."""

    def __init__(self, states: RequestStates) -> None:
        self._states = states

    def asker_of(self, ctx: Context, caller: Caller, params: CallToolRequestParams) -> Asker | None:
        """Return the way to the user of the call's client, if it can show forms. Raises MCPError
        for a state that is not of this call."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return None
        given = self._given(caller, params)
        if given is None and not can_show_forms(_capabilities_of(ctx)):
            return None
        return AnsweredLater(_through(ctx), given)

    def required(
        self, caller: Caller, params: CallToolRequestParams, needed: InputNeeded
    ) -> InputRequiredResult:
        """Return the answer that asks for input."""
        form = ElicitRequestFormParams(message=needed.form.message, requested_schema=SCHEMA)
        args = params.arguments or {}
        return InputRequiredResult(
            input_requests={_KEY: ElicitRequest(params=form)},
            request_state=self._states.seal(caller, params.name, args, needed.form.asked),
        )

    def _given(self, caller: Caller, params: CallToolRequestParams) -> GivenAnswer | None:
        if params.request_state is None:
            return None
        args = params.arguments or {}
        asked = self._states.open(caller, params.name, args, params.request_state)
        answer = (params.input_responses or {}).get(_KEY)
        if answer is None:
            return GivenAnswer(asked, None)
        if not isinstance(answer, ElicitResult):
            raise MCPError(INVALID_PARAMS, f"inputResponses.{_KEY} is no answer to a form")
        return GivenAnswer(asked, FormAnswer(answer.action, answer.content))


def _capabilities_of(ctx: Context) -> JsonObject:
    declared = ctx.session.client_capabilities
    return {} if declared is None else declared.model_dump(mode="json", exclude_none=True)


def _through(ctx: Context) -> DecidedThrough:
    params = ctx.session.client_params
    if params is None:
        return DecidedThrough(way="elicitation")
    info = params.client_info
    return DecidedThrough(
        way="elicitation",
        client=info.name[:_LONGEST_NAME],
        client_version=info.version[:_LONGEST_NAME],
    )
