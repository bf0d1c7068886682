"""Open requests for input in the bus's key-value cache, shared by all replicas."""

import json
from collections.abc import Collection, Mapping
from uuid import UUID

from typing_extensions import override

from pml_common.bus.port import KeyValueCache
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_gateway.ports import OpenInputs


class BusOpenInputs(OpenInputs):
    """An answer has an entry of its own: whoever takes one changes nothing that others write."""

    def __init__(self, cache: KeyValueCache) -> None:
        self._cache = cache

    @override
    async def open(
        self, scope: Scope, workflow_id: UUID, requests: Mapping[str, JsonObject], ttl_s: float
    ) -> None:
        name = _name(scope, workflow_id)
        if requests:
            await self._cache.put(name, json.dumps(requests).encode(), ttl_s)
        else:
            await self._cache.delete(name)

    @override
    async def find(self, scope: Scope, workflow_id: UUID) -> Mapping[str, JsonObject]:
        found = await self._cache.get(_name(scope, workflow_id))
        requests: dict[str, JsonObject] = {} if found is None else json.loads(found)
        answered = await self.answers(scope, workflow_id, requests)
        return {key: each for key, each in requests.items() if key not in answered}

    @override
    async def answer(
        self, scope: Scope, workflow_id: UUID, key: str, answer: JsonObject, ttl_s: float
    ) -> None:
        name = f"{_name(scope, workflow_id)}.{key}"
        await self._cache.put(name, json.dumps(answer).encode(), ttl_s)

    @override
    async def answers(
        self, scope: Scope, workflow_id: UUID, keys: Collection[str]
    ) -> Mapping[str, JsonObject]:
        found: dict[str, JsonObject] = {}
        for key in keys:
            answer = await self._cache.get(f"{_name(scope, workflow_id)}.{key}")
            if answer is not None:
                found[key] = json.loads(answer)
        return found


def _name(scope: Scope, workflow_id: UUID) -> str:
    return f"input.{scope}.{workflow_id.hex}"
