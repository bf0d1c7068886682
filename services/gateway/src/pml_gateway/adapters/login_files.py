"""Logins at MCP servers, in a folder: one file for each server, readable by its user alone."""

import asyncio
import logging
import os
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError
from typing_extensions import override

from pml_gateway.ports import Login, Logins

log = logging.getLogger(__name__)

_LOGIN: Final = TypeAdapter(Login)


class LoginFiles(Logins):
    """Files `<server>.json`, replaced atomically. A server's name is safe as a file's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @override
    async def find(self, server: str) -> Login | None:
        return await asyncio.to_thread(self._read, server)

    @override
    async def keep(self, server: str, login: Login) -> None:
        await asyncio.to_thread(self._write, server, login)

    @override
    async def forget(self, server: str) -> None:
        await asyncio.to_thread(self._file(server).unlink, missing_ok=True)

    def _file(self, server: str) -> Path:
        return self._folder / f"{server}.json"

    def _read(self, server: str) -> Login | None:
        try:
            return _LOGIN.validate_json(self._file(server).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            log.warning("the login at %s cannot be read: %s", server, type(error).__name__)
            return None

    def _write(self, server: str, login: Login) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = self._folder / f"{server}.{os.getpid()}.new"
        aside.unlink(missing_ok=True)
        aside.touch(mode=0o600)
        aside.write_bytes(_LOGIN.dump_json(login))
        aside.replace(self._file(server))
