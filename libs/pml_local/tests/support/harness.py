"""pytest fixtures on real servers, registered from the root conftest.

`nats_url`, `nats_account`: a fresh account per test on one nats-server per session, provisioned
(nats_accounts.py); `bare_account`: one without streams. `nats_server`: a nats-server of the test's
own, for tests that end it or look into it. `postgres_dsn`: a fresh database per test on one server
per session; a service's tests get one with its schema (databases.py). All servers die with pytest,
even when it is killed (see process.py).
"""

import asyncio
import inspect
import os
import secrets
import signal
import subprocess
import tempfile
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
)
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from libs.pml_local.tests.support.databases import Databases, Schema
from libs.pml_local.tests.support.nats_accounts import NatsAccount, NatsAccounts
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.identity import Identity
from pml_common.bus.provision import Plan, provisioner
from pml_common.bus.streams import StreamSettings
from pml_common.contracts.catalog import SERVICES
from pml_common.signing import SigningKey, TrustedKeys
from pml_local.account import database_account, reachable, system_folder
from pml_local.composition import postgres_passwords
from pml_local.folder import open_folder
from pml_local.keys import TRUSTED
from pml_local.nats import NatsServer
from pml_local.parts import start_on_free_port, start_part
from pml_local.postgres import SETTINGS, PostgresServer
from pml_local.postgres_cluster import ROLES, Passwords
from pml_local.process import ChildProcess

T = TypeVar("T")
POLL_SECONDS = 0.01
_UNSAFE_BUT_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_FOR_TESTS = "ALTER ROLE pml CREATEDB CREATEROLE;\nGRANT pg_signal_backend TO pml;\n"
"""Rights to make databases and roles for tests, and to end their sessions."""


async def eventually(
    check: Callable[[], T | Awaitable[T | None] | None], within: float = PATIENCE_S
) -> T:
    """Poll `check` until its result is truthy and return it; it may be async, and may assert.

    Raises AssertionError after `within` seconds, from the last one that `check` raised.
    """
    failure: AssertionError | None = None
    last: T | None = None
    try:
        async with asyncio.timeout(within):
            while True:
                try:
                    result = check()
                    last = await result if inspect.isawaitable(result) else result
                    if last:
                        return last
                    failure = None
                except AssertionError as error:
                    failure = error
                await asyncio.sleep(POLL_SECONDS)  # waits: the poll of all waits
    except TimeoutError:
        reason = failure or f"the last result was {last!r}"
        raise AssertionError(f"condition not met within {within:g} s: {reason}") from failure


class RunningNats:
    """A nats-server that a test may kill and restart on the same port and store."""

    def __init__(self, server: NatsServer) -> None:
        self._server = server
        self._process: ChildProcess | None = None

    @property
    def url(self) -> str:
        """URL for the operator, who may do everything."""
        return self._server.url

    def url_of(self, service: str) -> str:
        """URL for a service, with its own permissions."""
        return self._server.url_of(service)

    async def start(self) -> None:
        """Start it and wait until it is ready."""
        started_before = self._process is not None
        start = start_part if started_before else start_on_free_port
        self._process = await start(self._server)

    async def kill(self) -> None:
        """SIGKILL it and wait for its end."""
        if self._process is not None:
            await self._process.kill()

    async def stop(self) -> None:
        """Stop it gracefully, so that it writes its streams' state, and wait for its exit."""
        if self._process is not None:
            await self._process.stop()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Freeze it until the context exits; its connections stay open."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)


@pytest.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[RunningNats]:
    """A fresh nats-server with JetStream that a test may kill and restart."""
    server = NatsServer(
        tmp_path / "nats", tmp_path / "nats.log", secrets.token_hex(), streams=StreamSettings()
    )
    running = RunningNats(server)
    await running.start()
    try:
        yield running
    finally:
        await running.kill()


@pytest.fixture(scope="session")
async def nats_accounts(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsAccounts]:
    """The accounts of the session."""
    accounts = NatsAccounts(lambda: tmp_path_factory.mktemp("nats"))
    yield accounts
    await accounts.close()


@pytest.fixture
async def bare_account(nats_accounts: NatsAccounts) -> NatsAccount:
    """A fresh account with JetStream and without streams."""
    return await nats_accounts.take()


@pytest.fixture
async def nats_account(bare_account: NatsAccount) -> NatsAccount:
    """A fresh account with all streams and consumers."""
    await provision(bare_account.url)
    return bare_account


async def provision(url: str) -> None:
    """Create what is missing, and set what differs, as the operator."""
    async with provisioner(url, Plan(StreamSettings())) as run:
        assert [each for each in await run.provision() if each.problem is not None] == []


@pytest.fixture
def nats_url(request: pytest.FixtureRequest) -> str:
    """The operator's URL at a fresh account; at the test's own server when it has one."""
    own = "nats_server" in request.fixturenames
    found: NatsAccount | RunningNats = request.getfixturevalue(
        "nats_server" if own else "nats_account"
    )
    return found.url


def stack_identity(home: Path) -> Identity:
    """All services' identities, from the data folder of a stack."""
    keys = home / "keys"
    return Identity(
        [SigningKey.load(service, keys / f"{service}.pem") for service in SERVICES],
        TrustedKeys.load(keys / TRUSTED),
    )


@contextmanager
def reachable_folder() -> Generator[Path]:
    """A temporary folder that Postgres's account can reach; pytest's own are not reachable for
    root's."""
    parent = Path(tempfile.gettempdir())
    if database_account() is not None and not reachable(parent):
        parent = system_folder("tests")
    # The backends of a just killed Postgres may still write while it is removed.
    made = tempfile.TemporaryDirectory(prefix="pml-", dir=parent, ignore_cleanup_errors=True)
    with made as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture
def new_home() -> Iterator[Path]:
    """Path for a stack's data folder, not yet created."""
    with reachable_folder() as folder:
        yield folder / "pml home"


@pytest.fixture(scope="session")
async def used_home() -> AsyncIterator[Path]:
    """A data folder with a new cluster of Postgres, whose making takes 0.7 s of processor time."""
    with reachable_folder() as folder, open_folder(folder / "home") as home:
        account, log = database_account(), home.log("postgres")
        passwords = postgres_passwords(home)
        await PostgresServer(home.postgres(account), log, passwords, account=account).prepare()
        yield home.home


@pytest.fixture
def stack_home(new_home: Path, used_home: Path) -> Path:
    """A stack's data folder with a cluster of its own, never started."""
    subprocess.run(["cp", "-a", used_home, new_home], check=True, timeout=PATIENCE_S)
    return new_home


@pytest.fixture(scope="session")
async def postgres_server() -> AsyncIterator[PostgresServer]:
    """One Postgres per session, with durability off."""
    with reachable_folder() as folder:
        async with running_postgres(folder) as server:
            yield server


@asynccontextmanager
async def running_postgres(folder: Path, **settings: str) -> AsyncGenerator[PostgresServer]:
    """Run a Postgres without durability, with additional settings."""
    password = secrets.token_hex()
    server = PostgresServer(
        folder / "postgres",
        folder / "postgres.log",
        Passwords(password, dict.fromkeys(ROLES, password), _FOR_TESTS),
        account=database_account(),
        settings={**SETTINGS, **_UNSAFE_BUT_FAST, **settings},
    )
    process = await start_on_free_port(server)
    try:
        yield server
    finally:
        await process.stop()


@pytest.fixture(scope="session")
def databases(postgres_server: PostgresServer) -> Databases:
    """The databases of the session's Postgres."""
    return Databases(postgres_server)


@pytest.fixture
async def empty_dsn(databases: Databases) -> AsyncIterator[str]:
    """A fresh empty database (with pgvector), dropped after the test."""
    async with databases.empty() as dsn:
        yield dsn


@pytest.fixture
def postgres_dsn(empty_dsn: str) -> str:
    """The owner's DSN of a fresh database; a service's tests get their service's, of one with its
    schema."""
    return empty_dsn


@pytest.fixture
async def gateway_dsn(databases: Databases) -> AsyncIterator[str]:
    """The gateway's DSN of a fresh database with its schema, dropped after the test."""
    async with databases.copy(Schema("gateway", "pml_gateway")) as dsn:
        yield dsn


@pytest.fixture
async def learner_dsn(databases: Databases) -> AsyncIterator[str]:
    """The learner's DSN of a fresh database with its schema, dropped after the test."""
    async with databases.copy(Schema("learner", "pml_learner")) as dsn:
        yield dsn


@pytest.fixture
async def registry_dsn(databases: Databases) -> AsyncIterator[str]:
    """The registry's DSN of a fresh database with its schema, dropped after the test."""
    async with databases.copy(Schema("registry", "pml_registry")) as dsn:
        yield dsn
