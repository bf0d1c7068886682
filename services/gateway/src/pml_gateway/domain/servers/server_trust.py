"""Trust in servers' hints (`readOnlyHint`, …): those that the configuration trusts, and a few
well-known ones.

A hint decides what runs without approval, is called again after a crash, is called in a dry run and
may be cached. A well-known server is recognised by the command that fetches or starts it and by its
package, never by its name in the file, which can be anything.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pml_gateway.domain.servers.server_config import HttpServer, ServerConfig

NPM: Final[Mapping[str, str]] = {
    "@modelcontextprotocol/server-filesystem": "official; marks what reads and what writes",
    "@modelcontextprotocol/server-memory": "official; marks what reads its graph",
}
PYPI: Final[Mapping[str, str]] = {
    "mcp-server-git": "official; marks what reads the repository and what changes it",
    "mcp-server-time": "official; only tells the time",
}
"""Package → why its hints are trusted. `mcp-server-fetch` is left out on purpose: it reads, but an
address can exfiltrate what a program has read, so each call needs approval."""

_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]*")
"""A release or a tag: no address, path or alias (`@npm:other`) that names another package."""
_REDIRECTING: Final = ("npm_", "uv_", "pip_", "python", "node_", "deno_", "ld_", "path", "bun_")
"""Variables of an entry, in lower case, that may lead to another package of the same name."""


@dataclass(frozen=True)
class _Starter:
    """A command whose first word that is no option names the package. Other options than `flags`
    (`--registry`, `--with`, `--import-map`) may bring in something else."""

    packages: Mapping[str, str]
    words: tuple[str, ...] = ()
    prefix: str = ""
    flags: frozenset[str] = field(default_factory=frozenset[str])
    allows: bool = False


_NPX = frozenset({"-y", "--yes", "-q", "--quiet", "--offline", "--prefer-offline"})
_UVX = frozenset({"-q", "--quiet", "--offline", "--no-config", "--no-progress", "--isolated"})
_DENO = frozenset(
    {"-q", "--quiet", "--no-config", "--no-lock", "--no-prompt", "--ignore-env", "--cached-only"}
)
_STARTERS: Final[Mapping[str, tuple[_Starter, ...]]] = {
    "npx": (_Starter(NPM, flags=_NPX),),
    "bunx": (_Starter(NPM),),
    "pnpm": (_Starter(NPM, words=("dlx",)),),
    "deno": (_Starter(NPM, words=("run",), prefix="npm:", flags=_DENO, allows=True),),
    "uvx": (_Starter(PYPI, flags=_UVX),),
    "uv": (_Starter(PYPI, words=("tool", "run"), flags=_UVX),),
    "pipx": (_Starter(PYPI, words=("run",)),),
}
_MODULE: Final = ("-m",)


def trusts_hints(server: ServerConfig) -> bool:
    """Whether the server's hints on its tools are trusted."""
    if server.trust is not None:
        return server.trust == "hints"
    if isinstance(server, HttpServer) or _redirected(server.env):
        return False
    if server.command in ("python", "python3"):
        return server.args[:1] == _MODULE and _project(" ".join(server.args[1:2])) in PYPI
    starters = _STARTERS.get(server.command, ())
    return any(_package(starter, server.args) in starter.packages for starter in starters)


def _redirected(environment: Mapping[str, str]) -> bool:
    return any(name.lower().startswith(_REDIRECTING) for name in environment)


def _package(starter: _Starter, args: Sequence[str]) -> str | None:
    """Return the package that a command starts, without its version; None if it is not certain."""
    count = len(starter.words)
    if tuple(args[:count]) != starter.words:
        return None
    for word in args[count:]:
        if word in starter.flags or (starter.allows and word.startswith("--allow-")):
            continue
        if not word.startswith(starter.prefix):
            return None
        name, version = _split(word.removeprefix(starter.prefix))
        if version is not None and not _VERSION.fullmatch(version):
            return None
        return name if starter.packages is NPM else _project(name)
    return None


def _split(package: str) -> tuple[str, str | None]:
    """Split `name` or `name@version`; the name of an npm package may begin with `@`. PyPI also has
    `==`."""
    name, sign, version = package[1:].partition("@")
    if not sign:
        name, sign, version = package[1:].partition("==")
    return package[:1] + name, version if sign else None


def _project(name: str) -> str:
    """Normalise a Python package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()
