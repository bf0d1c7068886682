"""Spellings: the tools and servers that a name written in another way may mean.

A client lists a tool of `fs` as `fs_read_file`, other hosts give programs `read-file` as
`read_file` or `readFile`.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Generic, TypeVar

from pml_common.contracts.listed_names import HASH_DIGITS, listed_name

Found = TypeVar("Found")
Tool = tuple[str, str]
"""A server and the name of one of its tools."""

_SEPARATORS: Final = re.compile("[-_.:/ ]+")
"""Not every sign: a name with an invisible character imitates another."""

_HASHED: Final = re.compile(r"[0-9a-f]{8}\Z")
_OF_HOSTS: Final = frozenset({"call", "describe", "execute", "get", "has", "list", "run", "search"})
"""Methods that clients' libraries have for all tools."""

_HOST: Final = "mcp_"
"""Prefix that hosts put before the server."""


class Spellings:
    """The meanings of names in a catalog, which has servers with the names of their tools.

    Of two names the one means the other if they differ in case and separators alone. Where several
    differ so, those that have separators in the same places are meant.
    """

    def __init__(self, by_server: Mapping[str, Collection[str]]) -> None:
        self._by_server = by_server
        self._tools: dict[str, _Index[str]] = {}

    def has(self, path: Sequence[str | int | None]) -> bool:
        """Whether this is the path of a tool or of a server."""
        if len(path) == 1:
            return path[0] in self._by_server
        return len(path) == 2 and path[1] in self._by_server.get(str(path[0]), ())

    def servers(self, name: str) -> list[str]:
        """Return the servers that a name may mean: the one of this name, if there is one."""
        return [name] if name in self._by_server else self._servers.find(name)

    def tools_of(self, server: str, name: str) -> list[Tool]:
        """Return the tools that a path may mean; the one of this path, if there is one."""
        return [
            (each, tool)
            for each in self.servers(server)
            for tool in ([name] if name in self._by_server[each] else self._of(each).find(name))
        ]

    def tools(self, name: str) -> list[Tool]:
        """Return the tools that one name, with or without a server, may mean."""
        server, _, tool = name.partition(":")
        if tool in self._by_server.get(server, ()):
            return [(server, tool)]
        return self.listed(name) or self._alone.find(name)

    def tools_after_host(self, name: str) -> list[Tool]:
        """Return the tools that `mcp.name` may mean: no tool alone where hosts have a method of
        that name themselves."""
        return self.listed(name) if _plain(name) in _OF_HOSTS else self.tools(name)

    def listed(self, name: str) -> list[Tool]:
        """Return the tools that one name, with the server, may mean."""
        plain = _plain(name)
        return (
            self._joint.find(plain)
            or self._joint.find(plain.removeprefix(_HOST))
            or self._hashed(plain)
        )

    def _hashed(self, plain: str) -> list[Tool]:
        """Return the tools that are listed with digits of their hash."""
        if _HASHED.search(plain) is None:
            return []
        return [
            tool
            for tool in self._every()
            if any(_plain(listed_name(":".join(tool), d)) == plain for d in HASH_DIGITS[1:])
        ]

    def _of(self, server: str) -> "_Index[str]":
        if server not in self._tools:
            self._tools[server] = _Index((tool, tool) for tool in self._by_server[server])
        return self._tools[server]

    @cached_property
    def _servers(self) -> "_Index[str]":
        return _Index((server, server) for server in self._by_server)

    @cached_property
    def _joint(self) -> "_Index[Tool]":
        return _Index(("_".join(tool), tool) for tool in self._every())

    @cached_property
    def _alone(self) -> "_Index[Tool]":
        return _Index((tool[1], tool) for tool in self._every())

    def _every(self) -> Iterator[Tool]:
        return ((server, tool) for server, known in self._by_server.items() for tool in known)


class _Index(Generic[Found]):
    """Things by their names, in two forms: with separators, and with letters and digits alone."""

    def __init__(self, names: Iterable[tuple[str, Found]]) -> None:
        self._plain: dict[str, list[Found]] = {}
        self._letters: dict[str, list[Found]] = {}
        for name, found in names:
            plain = _plain(name)
            self._plain.setdefault(plain, []).append(found)
            self._letters.setdefault(plain.replace("_", ""), []).append(found)

    def find(self, name: str) -> list[Found]:
        plain = _plain(name)
        letters = plain.replace("_", "")
        if not letters:
            return []
        return self._plain.get(plain) or self._letters.get(letters, [])


def _plain(name: str) -> str:
    plain = _SEPARATORS.sub("_", name)
    return plain.lower() if plain.isascii() else plain
