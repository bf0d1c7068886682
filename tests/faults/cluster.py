"""A cluster of three nats-servers, connected by proxies that a test can cut."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import permutations
from pathlib import Path

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.tcp_proxy import TcpProxy
from pml_common.contracts.catalog import SERVICES
from pml_local.nats import ClusterMember, NatsServer
from pml_local.parts import start_part
from pml_local.ports import free_port
from pml_local.process import ChildProcess

SIZE = 3
NOWHERE = "127.0.0.1:9"
"""The advertised address of each server, so that the others reach it only through proxies."""


class Cluster:
    """Servers s0, s1 and s2 with the same users; each reaches each through a proxy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._passwords = {service: secrets.token_hex() for service in SERVICES}
        self._operator = secrets.token_hex()
        self._links: dict[tuple[int, int], TcpProxy] = {}
        self._servers: list[NatsServer] = []
        self._running: dict[int, ChildProcess] = {}

    @property
    def url(self) -> str:
        """URL for the operator: all servers."""
        return ",".join(server.url for server in self._servers)

    def url_of(self, service: str, index: int) -> str:
        """URL of one server for a service; that server announces the others."""
        return self._servers[index].url_of(service)

    async def start(self) -> None:
        """Start all servers and wait until there is a leader."""
        ports = [free_port() for _ in range(SIZE)]
        for here, there in permutations(range(SIZE), 2):
            link = self._links[here, there] = TcpProxy(f"nats://link@127.0.0.1:{ports[there]}")
            await link.listen()
        for index, port in enumerate(ports):
            routes = [link.port for (here, _), link in self._links.items() if here == index]
            member = ClusterMember(f"s{index}", port, routes, NOWHERE)
            name = self._folder / member.name
            server = NatsServer(
                name,
                name.with_suffix(".log"),
                self._operator,
                passwords=self._passwords,
                member=member,
            )
            self._servers.append(server)
        await asyncio.gather(*(self.revive(index) for index in range(SIZE)))
        async with self.operator() as operator:
            await eventually(lambda: _leads(operator))

    async def revive(self, index: int) -> None:
        """Start one server."""
        self._running[index] = await start_part(self._servers[index])

    async def kill(self, index: int) -> None:
        """SIGKILL one server."""
        await self._running.pop(index).kill()

    async def part(self, index: int) -> None:
        """Disconnect one server from the others; its clients stay connected."""
        for pair, link in self._links.items():
            if index in pair:
                await link.cut()

    async def join(self, index: int) -> None:
        """Reconnect it to the others."""
        for pair, link in self._links.items():
            if index in pair:
                await link.listen()

    async def stop(self) -> None:
        """Stop all running servers."""
        for process in self._running.values():
            await process.kill()
        for link in self._links.values():
            await link.cut()

    @asynccontextmanager
    async def operator(self) -> AsyncGenerator[JetStreamContext]:
        """The operator's JetStream, on any available server."""
        client = Client()
        servers = [server.url for server in self._servers]
        await client.connect(servers, error_cb=_ignore, connect_timeout=1)
        try:
            yield JetStreamContext(client, timeout=1.0)
        finally:
            await client.close()

    async def leader_of(self, stream: str) -> int:
        """The server that leads a stream."""

        async def leader() -> str | None:
            try:
                cluster = (await operator.stream_info(stream)).cluster
            except NatsError:
                return None
            return cluster.leader if cluster else None

        async with self.operator() as operator:
            return int((await eventually(leader)).removeprefix("s"))


async def _leads(operator: JetStreamContext) -> bool:
    try:
        await operator.account_info()
    except NatsError:
        return False
    return True


async def _ignore(_: Exception) -> None:
    """Ignore disconnections, which are intended here."""
