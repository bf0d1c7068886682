"""Small values with a time to live, in a JetStream key-value bucket.

The server delivers answers of its API to any subject that a client names for them, also into this
bucket. So values are signed: one that the bucket's owner has not stored under this key is none.
"""

import hashlib
import logging

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.kv import KV_DEL, KV_OP
from typing_extensions import override

from pml_common.bus import names
from pml_common.bus.connection import REPLY_TIMEOUT_S, server_errors
from pml_common.bus.identity import SIGNATURE, Identity, signed_content
from pml_common.bus.port import KeyValueCache
from pml_common.bus.server_api import ask
from pml_common.bus.streams import SHARED_STREAMS_OWNER

log = logging.getLogger(__name__)


class NatsKeyValueCache(KeyValueCache):
    """The bucket of one service's replicas."""

    def __init__(self, client: Client, js: JetStreamContext, identity: Identity) -> None:
        self._client = client
        self._js = js
        self._identity = identity
        self._prefix = f"$KV.{names.CACHE_BUCKET}."

    @override
    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        subject = f"{self._prefix}{key}"
        signature = self._identity.sign(SHARED_STREAMS_OWNER, _content(subject, value))
        with server_errors(self._client, f"put {key}"):
            await self._js.publish(subject, value, headers={SIGNATURE: signature}, msg_ttl=ttl_s)

    @override
    async def get(self, key: str) -> bytes | None:
        subject = f"{self._prefix}{key}"
        with server_errors(self._client, f"get {key}"):
            where = f"$JS.API.DIRECT.GET.{names.CACHE_STREAM}.{subject}"
            found = await self._client.request(where, b"", timeout=REPLY_TIMEOUT_S)
        headers = found.headers or {}
        if "Status" in headers or KV_OP in headers:
            return None
        content = _content(subject, found.data)
        fault = self._identity.fault(SHARED_STREAMS_OWNER, content, headers.get(SIGNATURE))
        if fault is not None:
            log.warning("the cached value of %s is ignored: %s", key, fault)
            return None
        return found.data

    @override
    async def delete(self, key: str) -> None:
        with server_errors(self._client, f"delete {key}"):
            headers = {KV_OP: KV_DEL}
            await self._js.publish(f"{self._prefix}{key}", b"", headers=headers, msg_ttl=1.0)

    @override
    async def count(self, prefix: str) -> int:
        with server_errors(self._client, f"count {prefix}"):
            request = {"subjects_filter": f"{self._prefix}{prefix}.*"}
            info = await ask(self._client, f"STREAM.INFO.{names.CACHE_STREAM}", request)
            return len(info["state"].get("subjects") or {})


def _content(subject: str, value: bytes) -> bytes:
    return signed_content(subject, "", hashlib.sha256(value).hexdigest())
