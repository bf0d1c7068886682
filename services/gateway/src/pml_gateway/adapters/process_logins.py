"""Logins that end with the process."""

from typing_extensions import override

from pml_gateway.ports import Login, Logins


class ProcessLogins(Logins):
    def __init__(self) -> None:
        self._kept: dict[str, Login] = {}

    @override
    async def find(self, server: str) -> Login | None:
        return self._kept.get(server)

    @override
    async def keep(self, server: str, login: Login) -> None:
        self._kept[server] = login

    @override
    async def forget(self, server: str) -> None:
        self._kept.pop(server, None)
