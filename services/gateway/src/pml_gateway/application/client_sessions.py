"""Sessions of MCP clients: begun by a handshake, found at every request."""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import uuid4

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.client_session import ClientSession, caller_key, session_key
from pml_gateway.ports import Caller, ClientSessions

SESSION_TTL_S = 24 * 3600.0
"""Time without a request, or an open stream, after which a session is forgotten."""


class Sessions:
    """The sessions of all clients, shared among replicas."""

    def __init__(
        self, store: ClientSessions, now: Callable[[], datetime], ttl_s: float = SESSION_TTL_S
    ) -> None:
        self._store = store
        self._now = now
        self._ttl_s = ttl_s

    async def begin(
        self, caller: Caller, version: str, capabilities: JsonObject, client_info: JsonObject
    ) -> str:
        """Store a new session and return its id, which nobody can guess. Raises BusUnavailable."""
        session_id, now = uuid4().hex, self._now()
        session = ClientSession(
            scope=caller.scope,
            caller=caller_key(caller.scope, caller.principal),
            key=session_key(caller.scope, caller.principal, session_id),
            protocol_version=version,
            capabilities=capabilities,
            client_info=client_info,
            begun_at=now,
            used_at=now,
        )
        await self._store.keep(session, self._ttl_s)
        return session_id

    async def find(self, caller: Caller, session_id: str) -> ClientSession | None:
        """Return a session of this caller, which stays for another while; None if there is none
        (any more). Raises BusUnavailable."""
        found = await self._store.find(caller, session_id)
        if found is None:
            return None
        now = self._now()
        if now - found.used_at > timedelta(seconds=self._ttl_s) / 10:
            found = found.model_copy(update={"used_at": now})
            await self._store.keep(found, self._ttl_s)
        return found
