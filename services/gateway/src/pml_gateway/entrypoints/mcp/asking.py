"""Elicitation (MCP): forms for the user of the client that makes a call.

From 2026-07-28 on the call is answered with the form, and made again with the answer. Before, a
client with a session is asked while it waits for the call's answer.
"""

import logging
from collections.abc import Callable
from datetime import datetime
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
from pydantic import ValidationError

from pml_common.contracts.fault_words import text_of
from pml_common.contracts.gateway import DecidedThrough
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.approval_form import (
    SCHEMA,
    ApprovalForm,
    FormAnswer,
    GivenAnswer,
    can_show_forms,
)
from pml_gateway.entrypoints.mcp.http_exchange import exchange_of
from pml_gateway.entrypoints.mcp.request_states import RequestStates
from pml_gateway.ports import Asker, Caller, ClientRefused, ClientSide, InputNeeded

log = logging.getLogger(__name__)

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


class AskedMeanwhile(Asker):
    """Sends the client of an open call the form (sessions, before 2026-07-28)."""

    def __init__(
        self, through: DecidedThrough, client: ClientSide, now: Callable[[], datetime]
    ) -> None:
        self.through = through
        self.given = None
        self._client = client
        self._now = now

    async def ask(self, form: ApprovalForm) -> FormAnswer | None:
        """Wait for the answer until the approval expires."""
        params: JsonObject = {"message": form.message, "requestedSchema": SCHEMA}
        left = (form.asked.expires_at - self._now()).total_seconds()
        try:
            result = await self._client.request("elicitation/create", params, max(0.0, left))
            answer = ElicitResult.model_validate(result, by_name=False)
        except (ClientRefused, ValidationError) as error:
            log.info("%s has no answer to its form: %s", form.asked.workflow_id, text_of(error))
            return None
        return FormAnswer(answer.action, answer.content)


class Asking:
    """Forms as calls are answered with them."""

    def __init__(self, states: RequestStates) -> None:
        self._states = states

    def asker_of(
        self, ctx: Context, caller: Caller, params: CallToolRequestParams, client: ClientSide | None
    ) -> Asker | None:
        """Return the way to the user of the call's client, if it can show forms. Raises MCPError
        for a state that is not of this call."""
        shows = client is not None and can_show_forms(client.capabilities)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            given = self._given(caller, params)
            return AnsweredLater(through_of(ctx), given) if shows or given is not None else None
        if client is None or not shows:
            return None
        return AskedMeanwhile(through_of(ctx), client, self._states.now)

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


def through_of(ctx: Context) -> DecidedThrough:
    """Return the way of a decision that comes from a client."""
    exchange, params = exchange_of(ctx), ctx.session.client_params
    info: JsonObject = {}
    if exchange is not None:
        info = exchange.session.client_info
    elif params is not None:
        info = params.client_info.model_dump(mode="json")
    client, version = _text_of(info, "name"), _text_of(info, "version")
    return DecidedThrough(way="elicitation", client=client, client_version=version)


def _text_of(info: JsonObject, field: str) -> str | None:
    text = info.get(field)
    return text[:_LONGEST_NAME] if isinstance(text, str) else None
