"""Sessions of MCP clients that begin with a handshake (`initialize`, revisions before
2026-07-28)."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256

from pydantic import BaseModel, ConfigDict

from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.log_levels import LogLevel

_DIGITS = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LONGEST_ID = 18


class ClientSession(BaseModel):
    """A session. Its id is known to the client alone: what is stored and sent is `key`, derived
    from the id and the `caller` (a `caller_key`), so that no other caller's id leads to it. Log
    messages below `log_level` are not sent; None: none are."""

    model_config = ConfigDict(frozen=True)

    scope: Scope
    caller: str
    key: str
    protocol_version: str
    capabilities: JsonObject
    client_info: JsonObject
    begun_at: datetime
    used_at: datetime
    log_level: LogLevel | None = None


def caller_key(scope: Scope, principal: str) -> str:
    """Return a name for a caller, of hexadecimal digits."""
    return _digest(str(scope), principal)


def session_key(scope: Scope, principal: str, session_id: str) -> str:
    """Return the name of a caller's session, of hexadecimal digits; different for each caller."""
    return _digest(str(scope), principal, session_id)


def event_id(at: datetime) -> str:
    """Return the id of an event that tells of everything until `at`, in any replica."""
    return str((at - _EPOCH) // _MICROSECOND)


def told_until(last_event_id: str | None, begun_at: datetime, now: datetime) -> datetime:
    """Return the time of the last change of which a client was told: that of the event that it got
    last or, where it got none of ours, of the beginning of its session."""
    given = last_event_id or ""
    if not given.isdecimal() or len(given) > _LONGEST_ID:
        return begun_at
    return _EPOCH + min(int(given) * _MICROSECOND, now - _EPOCH)


def _digest(*parts: str) -> str:
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
