"""`requestState` of 2026-07-28, sealed: what a call that is made again with an answer is about.

It travels through the client, so that any replica can go on. It is encrypted and authenticated,
ends with its approval, and belongs to one credential, tool and arguments. An approval is decided
once, so a state that is used again decides nothing.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from mcp import MCPError
from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState
from mcp_types import INVALID_PARAMS
from pydantic import AwareDatetime, ValidationError

from pml_common.contracts.base import Contract
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.approval_form import AskedApproval
from pml_gateway.ports import Caller

_REFUSED: Final = (
    "the requestState is invalid, expired, or of another call: make the call again without it and "
    "without inputResponses"
)

_OF_A_SERVER: Final = "server."
_SERVERS_STATE_FOR: Final = timedelta(hours=1)


class _State(Contract):
    call: str
    asked: AskedApproval
    until: AwareDatetime


class RequestStates:
    """Seals states with a key derived from `secret` (at least 32 bytes), which all replicas
    share."""

    def __init__(self, secret: bytes, now: Callable[[], datetime]) -> None:
        self.codec = AESGCMRequestStateCodec([secret])
        self.now = now

    def seal(self, caller: Caller, tool: str, args: JsonObject, asked: AskedApproval) -> str:
        """Return the state for a form that a call of a tool is answered with."""
        state = _State(call=_call(caller, tool, args), asked=asked, until=asked.expires_at)
        return self.codec.seal(state.model_dump_json().encode())

    def open(self, caller: Caller, tool: str, args: JsonObject, sealed: str) -> AskedApproval:
        """Return what the state of this call is about. Raises MCPError, without saying which of the
        checks failed."""
        try:
            state = _State.model_validate_json(self.codec.unseal(sealed))
        except (InvalidRequestState, ValidationError, UnicodeError) as error:
            raise MCPError(INVALID_PARAMS, _REFUSED) from error
        if state.call != _call(caller, tool, args) or self.now() >= state.until:
            raise MCPError(INVALID_PARAMS, _REFUSED)
        return state.asked


class _ServersState(Contract):
    call: str
    state: str
    until: AwareDatetime


class ServerStates:
    """Seals the states of upstream servers: each belongs to one credential, tool and arguments, of
    which the servers know nothing."""

    def __init__(self, states: RequestStates) -> None:
        self._states = states

    def is_of_server(self, sealed: str | None) -> bool:
        """Whether a state is one of a server, not of PML's own form."""
        return sealed is not None and sealed.startswith(_OF_A_SERVER)

    def seal(self, caller: Caller, tool: str, args: JsonObject, state: str) -> str:
        """Return the sealed state of a call's server."""
        until = self._states.now() + _SERVERS_STATE_FOR
        whole = _ServersState(call=_call(caller, tool, args), state=state, until=until)
        return _OF_A_SERVER + self._states.codec.seal(whole.model_dump_json().encode())

    def open(self, caller: Caller, tool: str, args: JsonObject, sealed: str) -> str:
        """Return the server's state. Raises MCPError, without saying which check failed."""
        try:
            unsealed = self._states.codec.unseal(sealed.removeprefix(_OF_A_SERVER))
            whole = _ServersState.model_validate_json(unsealed)
        except (InvalidRequestState, ValidationError, UnicodeError) as error:
            raise MCPError(INVALID_PARAMS, _REFUSED) from error
        if whole.call != _call(caller, tool, args) or self._states.now() >= whole.until:
            raise MCPError(INVALID_PARAMS, _REFUSED)
        return whole.state


def _call(caller: Caller, tool: str, args: JsonObject) -> str:
    """Return the SHA-256 (hex) by which a call is the same again."""
    what = [caller.scope.org, caller.scope.project, caller.principal, tool, args]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
