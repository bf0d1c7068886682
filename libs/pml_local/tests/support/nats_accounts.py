"""Accounts on a nats-server: tests share it and see nothing of each other."""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from pml_common.contracts.catalog import SERVICES
from pml_local.nats import NatsServer
from pml_local.nats_users import OPERATOR, users
from pml_local.parts import start_on_free_port
from pml_local.process import ChildProcess

ACCOUNTS = 20
"""Of one server. Each takes 10 open files and 1 MB of memory once the streams exist in it."""


class _SharedNats(NatsServer):
    """A nats-server with accounts, each with all users."""

    def __init__(self, folder: Path, accounts: int) -> None:
        self._accounts = accounts
        names = [f"{user}-{n}" for n in range(accounts) for user in (OPERATOR, *SERVICES)]
        self._words = {name: secrets.token_hex(8) for name in names}
        word = secrets.token_hex()
        super().__init__(folder, folder / "nats.log", word, passwords=self._words)

    @override
    def _configuration(self) -> str:
        words = {name: json.dumps(word) for name, word in self._words.items()}
        accounts = "\n".join(
            f"test-{n} {{ jetstream: enabled, {users(words, f'-{n}')} }}"
            for n in range(self._accounts)
        )
        return f"{super()._configuration()}accounts {{\n{accounts}\n}}\n"


@dataclass(frozen=True)
class NatsAccount:
    """An account, with the users and permissions of a server of its own."""

    _server: NatsServer
    _number: int

    @property
    def url(self) -> str:
        """URL for the operator, who may do everything."""
        return self.url_of(OPERATOR)

    def url_of(self, service: str) -> str:
        """URL for a service, with its own permissions."""
        return self._server.url_of(f"{service}-{self._number}")


class NatsAccounts:
    """Fresh accounts, of one server after another."""

    def __init__(self, new_folder: Callable[[], Path], of_a_server: int = ACCOUNTS) -> None:
        self._new_folder = new_folder
        self._of_a_server = of_a_server
        self._process: ChildProcess | None = None
        self._fresh: list[NatsAccount] = []

    async def take(self) -> NatsAccount:
        """Return an account that nobody has used. The one before must no longer be in use: when a
        server has no fresh account left, it ends and another starts."""
        if not self._fresh:
            await self.close()
            server = _SharedNats(self._new_folder(), self._of_a_server)
            self._process = await start_on_free_port(server)
            self._fresh = [NatsAccount(server, n) for n in range(self._of_a_server)]
        return self._fresh.pop()

    async def close(self) -> None:
        """End the server."""
        if self._process is not None:
            await self._process.kill()
