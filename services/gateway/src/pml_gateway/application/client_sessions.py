"""Sessions of MCP clients: begun by a handshake, found at every request."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.client_session import ClientSession, caller_key, session_key
from pml_gateway.domain.api.errors import Busy
from pml_gateway.domain.api.log_levels import LogLevel
from pml_gateway.ports import Caller, ClientSessions

_RETRY_AFTER_S = 60


@dataclass(frozen=True)
class SessionLimits:
    """A session is forgotten `ttl_s` seconds after its last request or open stream. A caller has at
    most `sessions` of them."""

    ttl_s: float = 24 * 3600.0
    sessions: int = 10_000


USUAL_LIMITS: Final = SessionLimits()


class Sessions:
    """The sessions of all clients, shared among replicas. Its methods raise BusUnavailable."""

    def __init__(
        self,
        store: ClientSessions,
        now: Callable[[], datetime],
        limits: SessionLimits = USUAL_LIMITS,
    ) -> None:
        self._store = store
        self._now = now
        self._limits = limits

    async def begin(
        self, caller: Caller, version: str, capabilities: JsonObject, client_info: JsonObject
    ) -> str:
        """Store a new session and return its id, which nobody can guess. Raises Busy where the
        caller has too many."""
        session_id, now = uuid4().hex, self._now()
        owner, most = caller_key(caller.scope, caller.principal), self._limits.sessions
        if await self._store.count(owner) >= most:
            raise Busy(
                f"this credential has {most} MCP sessions: end some (DELETE); those without a "
                f"request are forgotten after {self._limits.ttl_s / 3600:g} h",
                _RETRY_AFTER_S,
            )
        session = ClientSession(
            scope=caller.scope,
            caller=owner,
            key=session_key(caller.scope, caller.principal, session_id),
            protocol_version=version,
            capabilities=capabilities,
            client_info=client_info,
            begun_at=now,
            used_at=now,
        )
        await self._store.keep(session, self._limits.ttl_s)
        return session_id

    async def find(self, caller: Caller, session_id: str) -> ClientSession | None:
        """Return a session of this caller and note that it is used; None if it has none with this
        id (any more)."""
        scope, principal = caller.scope, caller.principal
        found = await self._store.find(
            caller_key(scope, principal), session_key(scope, principal, session_id)
        )
        return None if found is None else await self._used(found)

    async def renew(self, session: ClientSession) -> ClientSession | None:
        """Note that a session is used; return it as it is now, None where there is none any
        more."""
        found = await self._store.find(session.caller, session.key)
        return None if found is None else await self._used(found)

    async def set_log_level(self, session: ClientSession, level: LogLevel) -> None:
        """Have log messages of this level and above sent to a session's client."""
        changed = session.model_copy(update={"log_level": level, "used_at": self._now()})
        await self._store.keep(changed, self._limits.ttl_s)

    async def end(self, session: ClientSession) -> None:
        """Forget a session."""
        await self._store.drop(session)

    async def _used(self, session: ClientSession) -> ClientSession:
        now, ttl_s = self._now(), self._limits.ttl_s
        if now - session.used_at > timedelta(seconds=ttl_s) / 10:
            session = session.model_copy(update={"used_at": now})
            await self._store.keep(session, ttl_s)
        return session
