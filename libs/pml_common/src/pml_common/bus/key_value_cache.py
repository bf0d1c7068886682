"""Small values with a time to live, in a JetStream key-value bucket."""
# nats-py leaves its **params untyped:
# pyright: reportUnknownMemberType=false

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from nats.js.kv import KV_DEL, KV_OP, KeyValue
from typing_extensions import override

from pml_common.bus import names
from pml_common.bus.connection import server_errors
from pml_common.bus.port import KeyValueCache


class NatsKeyValueCache(KeyValueCache):
    """The bucket that all services share."""

    def __init__(self, client: Client, js: JetStreamContext) -> None:
        self._client = client
        self._js = js
        self._prefix = f"$KV.{names.CACHE_BUCKET}."
        self._bucket = KeyValue(
            name=names.CACHE_BUCKET,
            stream=names.CACHE_STREAM,
            pre=self._prefix,
            js=js,
            direct=True,
        )

    @override
    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        with server_errors(self._client, f"put {key}"):
            # nats-py's `KeyValue.put` has no time to live.
            await self._js.publish(f"{self._prefix}{key}", value, msg_ttl=ttl_s)

    @override
    async def get(self, key: str) -> bytes | None:
        with server_errors(self._client, f"get {key}"):
            try:
                return (await self._bucket.get(key)).value
            except NotFoundError:
                return None

    @override
    async def delete(self, key: str) -> None:
        with server_errors(self._client, f"delete {key}"):
            headers = {KV_OP: KV_DEL}
            await self._js.publish(f"{self._prefix}{key}", b"", headers=headers, msg_ttl=1.0)

    @override
    async def count(self, prefix: str) -> int:
        with server_errors(self._client, f"count {prefix}"):
            subjects = f"{self._prefix}{prefix}.*"
            info = await self._js.stream_info(names.CACHE_STREAM, subjects_filter=subjects)
            return len(info.state.subjects or {})
