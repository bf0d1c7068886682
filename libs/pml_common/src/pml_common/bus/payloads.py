"""Big bodies in a JetStream object store, by their SHA-256."""

from datetime import UTC, datetime, timedelta

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from nats.js.object_store import ObjectStore

from pml_common.bus import names, streams
from pml_common.bus.connection import server_errors
from pml_common.bus.journal import read_stored


class NatsPayloads:
    """The bucket that all services share."""

    def __init__(self, client: Client, js: JetStreamContext) -> None:
        self._client = client
        self._stream = f"OBJ_{names.PAYLOAD_BUCKET}"
        self._store = ObjectStore(names.PAYLOAD_BUCKET, self._stream, js)

    async def put(self, key: str, data: bytes) -> None:
        """See `codec.Payloads`."""
        with server_errors(self._client, f"store payload {key}"):
            if not await self._outlives_a_message(key):
                await self._store.put(key, data)

    async def _outlives_a_message(self, key: str) -> bool:
        try:
            info = await self._store.get_info(key)
        except NotFoundError:
            return False
        stored_at = datetime.fromisoformat(info.mtime or "")
        return datetime.now(UTC) - stored_at < timedelta(seconds=streams.MESSAGE_AGE_S)

    async def get(self, key: str) -> bytes | None:
        """See `codec.Payloads`."""
        with server_errors(self._client, f"read payload {key}"):
            try:
                info = await self._store.get_info(key)
            except NotFoundError:
                return None
        chunks = await read_stored(
            self._client, self._stream, f"$O.{names.PAYLOAD_BUCKET}.C.{info.nuid}"
        )
        return b"".join(chunk.data for chunk in chunks)
