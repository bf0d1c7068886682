"""MCP servers that nobody here wrote, pinned, and the commands that install and start them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from pydantic import JsonValue

OFFICIAL: Final = "@modelcontextprotocol/server-"
_NO_WAY_OUT: Final = "http://127.0.0.1:9"
_BEFORE_2: Final = "1.27.0"
"""The SDK before 2.0, for a server that does not bound its dependency and does not run on 2.x."""


@dataclass(frozen=True)
class Programs:
    """The programs that fetch and run packages, and the folder of what they fetch."""

    deno: str
    uv: str
    cache: Path


@dataclass(frozen=True)
class Known:
    """One way to reach a server. `args` and `env` may hold `{port}` and `{folder}`; `host` and
    `path` are those of its URL where it listens itself. `call` is a tool that needs nothing but
    this machine."""

    title: str
    registry: Literal["npm", "pypi"]
    package: str
    release: str
    transport: Literal["stdio", "http", "sse"] = "stdio"
    args: Sequence[str] = ()
    host: str = "127.0.0.1"
    path: str = ""
    program: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    beside: Sequence[str] = ()
    walled: bool = True
    call: tuple[str, Mapping[str, JsonValue]] | None = None

    @property
    def listens(self) -> bool:
        """Whether it is reached at a port."""
        return self.transport != "stdio"

    def fetch(self, programs: Programs) -> Sequence[str]:
        """Return the command that downloads it."""
        if self.registry == "npm":
            package = f"npm:{self.package}@{self.release}"
            return (programs.deno, "cache", "--quiet", "--no-config", "--no-lock", package)
        return (*self._tool(programs), "python", "-c", "")

    def start(self, programs: Programs, folder: Path, port: int) -> Sequence[str]:
        """Return the command that starts it, from what was downloaded."""
        args = [arg.format(port=port, folder=folder) for arg in self.args]
        if self.registry == "npm":
            package = f"npm:{self.package}@{self.release}"
            return (programs.deno, "run", *self._permissions(folder), package, *args)
        return (*self._tool(programs, "--offline"), self.program or self.package, *args)

    def environment(self, programs: Programs, folder: Path, port: int) -> dict[str, str]:
        """Return its variables: requests by proxy lead nowhere, and its home is the folder."""
        own = {key: value.format(port=port, folder=folder) for key, value in self.env.items()}
        proxies = {name: _NO_WAY_OUT for name in ("HTTP_PROXY", "HTTPS_PROXY")}
        deno = {"DENO_DIR": str(programs.cache / "deno"), "NO_COLOR": "1"}
        uv = {"UV_CACHE_DIR": str(programs.cache / "uv"), "UV_PYTHON_DOWNLOADS": "never"}
        local = {"NO_PROXY": "127.0.0.1,localhost", "HOME": str(folder)}
        return {**proxies, **local, **(deno if self.registry == "npm" else uv), **own}

    def _permissions(self, folder: Path) -> Sequence[str]:
        common = ("--quiet", "--no-prompt", "--no-config", "--no-lock", "--cached-only")
        if not self.walled:
            return (*common, "--allow-all")
        return (
            *common,
            *("--allow-read", "--allow-env", "--allow-sys", "--allow-run", "--allow-ffi"),
            f"--allow-write={folder},{os.environ.get('TMPDIR', '/tmp')}",  # noqa: S108
            "--allow-net=127.0.0.1,localhost,[::]",
        )

    def _tool(self, programs: Programs, *options: str) -> Sequence[str]:
        beside = [word for package in self.beside for word in ("--with", package)]
        package = f"{self.package}=={self.release}"
        return (programs.uv, "tool", "run", "--quiet", *options, *beside, "--from", package)


EVERYTHING: Final = (f"{OFFICIAL}everything", "2026.8.31")
KNOWN: Final = (
    Known("Everything", "npm", *EVERYTHING, call=("echo", {"message": "hello"})),
    Known(
        "Everything (HTTP)",
        "npm",
        *EVERYTHING,
        transport="http",
        args=("streamableHttp",),
        path="/mcp",
        env={"PORT": "{port}"},
        call=("echo", {"message": "hello"}),
    ),
    Known(
        "Everything (SSE)",
        "npm",
        *EVERYTHING,
        transport="sse",
        args=("sse",),
        path="/sse",
        env={"PORT": "{port}"},
        call=("echo", {"message": "hello"}),
    ),
    Known("Memory", "npm", f"{OFFICIAL}memory", "2026.8.31", call=("read_graph", {})),
    Known(
        "Sequential Thinking",
        "npm",
        f"{OFFICIAL}sequential-thinking",
        "2026.8.31",
        call=(
            "sequentialthinking",
            {
                "thought": "one",
                "nextThoughtNeeded": False,
                "thoughtNumber": 1,
                "totalThoughts": 1,
            },
        ),
    ),
    Known(
        "Filesystem",
        "npm",
        f"{OFFICIAL}filesystem",
        "2026.8.31",
        args=("{folder}",),
        call=("list_allowed_directories", {}),
    ),
    Known("Playwright", "npm", "@playwright/mcp", "0.0.83", args=("--headless",), walled=False),
    Known(
        "Playwright (HTTP)",
        "npm",
        "@playwright/mcp",
        "0.0.83",
        transport="http",
        args=("--headless", "--port", "{port}"),
        host="localhost",
        path="/mcp",
        walled=False,
    ),
    Known("Chrome DevTools", "npm", "chrome-devtools-mcp", "1.11.0"),
    Known("Context7", "npm", "@upstash/context7-mcp", "4.1.1"),
    Known("DBHub", "npm", "@bytebase/dbhub", "1.4.0", args=("--demo",)),
    Known("Git (cyanheads)", "npm", "@cyanheads/git-mcp-server", "2.15.3"),
    Known("AntV Chart", "npm", "@antv/mcp-server-chart", "0.9.10"),
    Known("ESLint", "npm", "@eslint/mcp", "0.3.13"),
    Known(
        "Desktop Commander",
        "npm",
        "@wonderwhy-er/desktop-commander",
        "0.2.52",
        walled=False,
        call=("list_processes", {}),
    ),
    Known("Fetch", "pypi", "mcp-server-fetch", "2026.10.24"),
    Known("Git", "pypi", "mcp-server-git", "2026.10.19"),
    Known(
        "Time",
        "pypi",
        "mcp-server-time",
        "2026.10.19",
        call=("get_current_time", {"timezone": "Etc/UTC"}),
    ),
    Known(
        "SQLite",
        "pypi",
        "mcp-server-sqlite",
        "2025.4.25",
        args=("--db-path", "{folder}/notes.db"),
        beside=(f"mcp=={_BEFORE_2}",),
        call=("list_tables", {}),
    ),
    Known(
        "Calculator",
        "pypi",
        "mcp-server-calculator",
        "0.2.1",
        call=("calculate", {"expression": "6 * 7"}),
    ),
    Known("DuckDuckGo", "pypi", "duckduckgo-mcp-server", "0.7.0"),
    Known(
        "DuckDuckGo (SSE)",
        "pypi",
        "duckduckgo-mcp-server",
        "0.7.0",
        transport="sse",
        args=("--transport", "sse", "--port", "{port}"),
        path="/sse",
    ),
    Known(
        "Wikipedia (SSE)",
        "pypi",
        "wikipedia-mcp",
        "2.0.1",
        transport="sse",
        args=("--transport", "sse", "--port", "{port}"),
        path="/sse",
    ),
    Known("Excel", "pypi", "excel-mcp-server", "2.2.2", args=("stdio",)),
    Known(
        "MotherDuck (HTTP)",
        "pypi",
        "mcp-server-motherduck",
        "1.1.0",
        transport="http",
        args=("--db-path", ":memory:", "--read-write", "--transport", "http", "--port", "{port}"),
        path="/mcp",
        call=("execute_query", {"sql": "select 42"}),
    ),
    Known("arXiv", "pypi", "arxiv-mcp-server", "0.8.2"),
)
