"""Sessions of MCP clients in the bus's key-value cache, shared by all replicas."""

from typing_extensions import override

from pml_common.bus.port import KeyValueCache
from pml_gateway.domain.api.client_session import ClientSession, caller_key, session_key
from pml_gateway.ports import Caller, ClientSessions


class BusClientSessions(ClientSessions):
    """The bus deletes sessions that are not used for their time to live."""

    def __init__(self, cache: KeyValueCache) -> None:
        self._cache = cache

    @override
    async def keep(self, session: ClientSession, ttl_s: float) -> None:
        await self._cache.put(
            _name(session.caller, session.key), session.model_dump_json().encode(), ttl_s
        )

    @override
    async def find(self, caller: Caller, session_id: str) -> ClientSession | None:
        owner = caller.scope, caller.principal
        found = await self._cache.get(_name(caller_key(*owner), session_key(*owner, session_id)))
        return None if found is None else ClientSession.model_validate_json(found)


def _name(caller: str, key: str) -> str:
    return f"session.{caller}.{key}"
