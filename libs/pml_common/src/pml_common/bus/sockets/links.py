"""Connections to all replicas of one service on this machine, looked for when they are needed."""

import asyncio
import logging
from collections import deque
from functools import partial

from pml_common.bus.identity import Identity
from pml_common.bus.sockets.folder import SocketFolder, SocketUnusable
from pml_common.bus.sockets.handshake import HandshakeFailed
from pml_common.bus.sockets.link import Link

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 2.0
_FIRST_DELAY_S, _MOST_DELAY_S = 0.05, 1.0
_HANDSHAKE_S = 1.0


class Links:
    """Connections of the service `client` to the replicas of `server` that listen in `folder`."""

    def __init__(self, folder: SocketFolder, client: str, server: str, identity: Identity) -> None:
        self._folder = folder
        self._client = client
        self._server = server
        self._identity = identity
        self._links: deque[tuple[str, Link]] = deque()
        self._one_look = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._look_at = 0.0
        self._delay_s = _FIRST_DELAY_S
        self._refused: str | None = None
        self._closed = False

    def pick(self) -> Link | None:
        """Return a usable connection, each in turn, or None; looks for replicas meanwhile if it is
        time to, more and more seldom while there are none."""
        now = asyncio.get_running_loop().time()
        if now >= self._look_at and self._looking is None and not self._closed:
            self._looking = asyncio.create_task(self.look(), name=f"sockets of the {self._server}")
            self._looking.add_done_callback(self._looked)
        for _ in range(len(self._links)):
            self._links.rotate(-1)
            if self._links[-1][1].usable:
                return self._links[-1][1]
        return None

    async def look(self) -> None:
        """Connect to every replica without a connection; returns once each try has ended."""
        async with self._one_look:
            try:
                known = {name for name, _ in self._links}
                names = [name for name in self._folder.names() if name not in known]
            except SocketUnusable as refused:
                self._note(str(refused))
                return
            faults = await asyncio.gather(*map(self._connect, names))
            self._note(next((fault for fault in faults if fault is not None), None))

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})
        links = [link for _, link in self._links]
        for link in links:
            link.close()
        if links:
            await asyncio.wait({link.lost for link in links}, timeout=_HANDSHAKE_S)

    async def _connect(self, name: str) -> str | None:
        """Connect to one replica; returns why that was refused, or None."""
        try:
            connected = self._folder.connect(name)
        except SocketUnusable as refused:
            log.debug("no connection to the %s: %s", self._server, refused)
            return None  # left behind, or busy
        link = Link(connected, self._client, self._server, self._identity)
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: link, sock=connected)
        try:
            async with asyncio.timeout(_HANDSHAKE_S):
                await link.ready
        except TimeoutError:
            link.close()
            return f"{name}: no handshake within {_HANDSHAKE_S:g} s"
        except HandshakeFailed as failed:
            link.close()
            return f"{name}: {failed}"
        except asyncio.CancelledError:
            link.close()
            raise
        self._links.append((name, link))
        link.lost.add_done_callback(partial(self._drop, name, link))
        log.info("connected to the %s over a socket (%s)", self._server, name)
        return None

    def _drop(self, name: str, link: Link, _: asyncio.Future[None]) -> None:
        self._links.remove((name, link))
        self._look_at = 0.0
        if not self._closed:
            log.info("lost the %s's socket (%s)", self._server, name)

    def _looked(self, task: asyncio.Task[None]) -> None:
        self._looking = None
        found = bool(self._links)
        delay_s = _LOOK_EVERY_S if found else self._delay_s
        self._delay_s = _FIRST_DELAY_S if found else min(2 * self._delay_s, _MOST_DELAY_S)
        self._look_at = asyncio.get_running_loop().time() + delay_s
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("looking for sockets of the %s failed", self._server, exc_info=error)

    def _note(self, refused: str | None) -> None:
        """Log a refusal once, until another one or none."""
        if refused is not None and refused != self._refused:
            log.warning("queries to the %s go over NATS: %s", self._server, refused)
        self._refused = refused
