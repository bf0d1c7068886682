"""Large bodies in a JetStream object store, by their SHA-256."""

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import Header, ObjectInfo
from nats.js.errors import NotFoundError
from nats.js.kv import MSG_ROLLUP_SUBJECT
from nats.js.object_store import ObjectStore
from typing_extensions import override

from pml_common.bus import names, streams
from pml_common.bus.codec import Payloads
from pml_common.bus.connection import server_errors
from pml_common.bus.journal import read_stored

_CHUNK = 128 * 1024
LAG_DELAYS_S = (0.1, 0.3, 1.0, 2.0)
"""Delays between reads from a replica that may lag behind its leader."""


class NatsPayloads(Payloads):
    """The bucket that all services share."""

    def __init__(self, client: Client, js: JetStreamContext) -> None:
        self._client = client
        self._js = js
        self._stream = names.PAYLOAD_STREAM
        self._store = ObjectStore(names.PAYLOAD_BUCKET, self._stream, js)

    @override
    async def put(self, key: str, data: bytes) -> None:
        with server_errors(self._client, f"store payload {key}"):
            if not await self._outlives_a_message(key):
                await self._put(key, data)

    async def _put(self, key: str, data: bytes) -> None:
        """Store a body like nats-py's `ObjectStore.put`, without its purge of the chunks of an
        earlier body of that name: no service may purge, and old chunks expire by themselves."""
        nuid, digest = uuid4().hex, base64.urlsafe_b64encode(bytes.fromhex(key)).decode()
        chunks = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)]
        for chunk in chunks:
            await self._js.publish(f"$O.{names.PAYLOAD_BUCKET}.C.{nuid}", chunk)
        info = ObjectInfo(
            name=key,
            bucket=names.PAYLOAD_BUCKET,
            nuid=nuid,
            size=len(data),
            chunks=len(chunks),
            digest=f"SHA-256={digest}",
            mtime=datetime.now(UTC).isoformat(),
        )
        name = base64.urlsafe_b64encode(key.encode()).decode()
        await self._js.publish(
            f"$O.{names.PAYLOAD_BUCKET}.M.{name}",
            json.dumps(info.as_dict()).encode(),
            headers={Header.ROLLUP: MSG_ROLLUP_SUBJECT},
        )

    async def _outlives_a_message(self, key: str) -> bool:
        try:
            info = await self._store.get_info(key)
        except NotFoundError:
            return False
        stored_at = datetime.fromisoformat(info.mtime or "")
        return datetime.now(UTC) - stored_at < timedelta(seconds=streams.MESSAGE_AGE_S)

    @override
    async def get(self, key: str) -> bytes | None:
        with server_errors(self._client, f"read payload {key}"):
            try:
                info = await self._store.get_info(key)
            except NotFoundError:
                return None
        subject = f"$O.{names.PAYLOAD_BUCKET}.C.{info.nuid}"
        chunks = await read_stored(self._client, self._stream, subject)
        for pause in LAG_DELAYS_S:
            # The leader has the object's info, a lagging replica may serve its chunks.
            if len(chunks) >= (info.chunks or 0):
                break
            await asyncio.sleep(pause)
            chunks = await read_stored(self._client, self._stream, subject)
        # A chunk that is lost shows as a wrong digest in `codec.check_out`.
        return b"".join(chunk.data for chunk in chunks)
