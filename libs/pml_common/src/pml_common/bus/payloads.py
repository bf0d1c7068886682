"""Large bodies by their SHA-256, each service's under subjects of its own.

A body is stored in parts under `pml.body.<service>.<digest>.<period>`, and then `end` with their
number. A subject takes one message, so nothing that is stored is ever replaced. What is read must
have the digest, whoever stored it. A message may be stored for a week after its body, and lives for
another: so a body is stored again in the next period of a week, and kept for two.

Each service may store anything under any digest. So reading is bounded, and what one has stored
keeps nobody from what another has.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections import defaultdict
from collections.abc import Sequence

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError, ServiceUnavailableError
from nats.js.object_store import ObjectStore
from typing_extensions import override

from pml_common.bus import names, streams
from pml_common.bus.codec import BODY_LIMIT, Payloads
from pml_common.bus.connection import REPLY_TIMEOUT_S, server_errors
from pml_common.bus.errors import BusError, TooLarge
from pml_common.bus.journal import read_stored
from pml_common.bus.server_api import ask
from pml_common.contracts.catalog import SERVICES

log = logging.getLogger(__name__)

_PART = 128 * 1024
_END = "end"
_ANY = "*"
_MOST_READ = 3 * BODY_LIMIT
"""Bytes read under one digest: a body may be stored in three periods at a time."""
_TAKEN = "maximum messages per subject exceeded"
LAG_DELAYS_S = (0.1, 0.3, 1.0, 2.0)
"""Delays between reads from a replica that may lag behind its leader."""
FORMER_BUCKET = "PML_PAYLOADS"
FORMER_STREAM = f"OBJ_{FORMER_BUCKET}"
"""The object store of v0.1.0; what it has is read until it expires, nothing is added."""


class NatsPayloads(Payloads):
    """The store of one service's bodies, and the reader of all."""

    def __init__(self, client: Client, js: JetStreamContext, service: str) -> None:
        self._client = client
        self._js = js
        self._service = service

    @override
    async def put(self, key: str, data: bytes) -> None:
        period = str(int(time.time() / streams.MESSAGE_AGE_S))

        def subject(part: str) -> str:
            return names.body_subject(self._service, key, period, part)

        with server_errors(self._client, f"store payload {key}"):
            if await self._is_stored(subject(_END)):
                return
            parts = [data[at : at + _PART] for at in range(0, len(data), _PART)]
            taken = [await self._store(subject(str(n)), each) for n, each in enumerate(parts)]
            taken.append(await self._store(subject(_END), str(len(parts)).encode()))
        if any(taken) and await self.get(key) is None:
            raise BusError(
                f"payload {key} cannot be stored: {subject('*')} holds other data, which this "
                "service has not stored. Change the NATS passwords: somebody writes in its place"
            )

    @override
    async def get(self, key: str) -> bytes | None:
        with server_errors(self._client, f"read payload {key}"):
            found = await self._read(key)
            for pause in LAG_DELAYS_S:
                # The leader has the body, a lagging replica may not have all of it.
                if isinstance(found, bytes) or not await self._is_known(key):
                    break
                await asyncio.sleep(pause)
                found = await self._read(key)
            if isinstance(found, TooLarge):
                raise found
            return await self._read_former(key) if found is None else found

    async def _store(self, subject: str, data: bytes) -> bool:
        """Store one part; return whether its subject was taken, and nothing stored."""
        try:
            await self._js.publish(subject, data)
        except ServiceUnavailableError as error:
            if error.description != _TAKEN:
                raise
            return True
        return False

    async def _is_stored(self, subject: str) -> bool:
        request = json.dumps({"last_by_subj": subject}).encode()
        where = f"$JS.API.DIRECT.GET.{names.PAYLOAD_STREAM}"
        reply = await self._client.request(where, request, timeout=REPLY_TIMEOUT_S)
        return "Status" not in (reply.headers or {})

    async def _is_known(self, key: str) -> bool:
        """Return whether the leader has the end of a body."""
        end = names.body_subject("*", key, "*", _END)
        try:
            verb = f"STREAM.MSG.GET.{names.PAYLOAD_STREAM}"
            await ask(self._client, verb, {"seq": 1, "next_by_subj": end})
        except NotFoundError:
            return False
        return True

    async def _read(self, key: str) -> bytes | TooLarge | None:
        """Return the body of this digest among all that is stored under it."""
        try:
            return await self._read_of(_ANY, key)
        except TooLarge as error:
            log.warning("payload %s: %s; reading what each service has stored", key, error)
            refused = error.with_traceback(None)  # which holds what was read
        for service in SERVICES:
            try:
                found = await self._read_of(service, key)
            except TooLarge as error:
                refused = error.with_traceback(None)
            else:
                if found is not None:
                    return found
        return refused

    async def _read_of(self, service: str, key: str) -> bytes | None:
        """Return the body among what one service has stored, or any. Raises TooLarge."""
        subjects = names.body_subject(service, key, "*", "*")
        stored = await read_stored(
            self._client, names.PAYLOAD_STREAM, subjects, most_bytes=_MOST_READ
        )
        places: dict[str, dict[str, bytes]] = defaultdict(dict)
        for each in stored:
            place, _, part = (each.headers or {})["Nats-Subject"].rpartition(".")
            places[place][part] = each.data
        bodies = (_joined(parts) for parts in places.values())
        return next((each for each in bodies if hashlib.sha256(each).hexdigest() == key), None)

    async def _read_former(self, key: str) -> bytes | None:
        try:
            info = await ObjectStore(FORMER_BUCKET, FORMER_STREAM, self._js).get_info(key)
        except NotFoundError:
            return None
        subject = f"$O.{FORMER_BUCKET}.C.{info.nuid}"
        chunks: Sequence[Msg] = await read_stored(
            self._client, FORMER_STREAM, subject, most_bytes=_MOST_READ
        )
        # A chunk that is lost shows as a wrong digest in `codec.check_out`.
        return b"".join(chunk.data for chunk in chunks)


def _joined(parts: dict[str, bytes]) -> bytes:
    """Join the parts in order, as far as they are there: the digest shows whether all are."""
    numbered = sorted((int(name), data) for name, data in parts.items() if name.isdecimal())
    return b"".join(data for _, data in numbered)
