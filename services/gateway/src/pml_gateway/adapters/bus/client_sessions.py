"""Sessions of MCP clients in the bus's key-value cache, shared by all replicas."""

from typing_extensions import override

from pml_common.bus.port import KeyValueCache
from pml_gateway.domain.api.client_session import ClientSession
from pml_gateway.ports import ClientSessions


class BusClientSessions(ClientSessions):
    """The bus deletes sessions that are not used for their time to live."""

    def __init__(self, cache: KeyValueCache) -> None:
        self._cache = cache

    @override
    async def keep(self, session: ClientSession, ttl_s: float) -> None:
        name = _name(session.caller, session.key)
        await self._cache.put(name, session.model_dump_json().encode(), ttl_s)

    @override
    async def find(self, caller: str, key: str) -> ClientSession | None:
        found = await self._cache.get(_name(caller, key))
        return None if found is None else ClientSession.model_validate_json(found)

    @override
    async def drop(self, session: ClientSession) -> None:
        await self._cache.delete(_name(session.caller, session.key))

    @override
    async def count(self, caller: str) -> int:
        return await self._cache.count(f"session.{caller}")


def _name(caller: str, key: str) -> str:
    return f"session.{caller}.{key}"
