"""The demo's two third-party MCP servers: pinned, fetched, and configured."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pml_cli.demo.narrator import DemoFailed
from pml_local.environment import SYSTEM_CERTIFICATES

FILESYSTEM = "@modelcontextprotocol/server-filesystem"
FILESYSTEM_VERSION = "2026.8.31"
GIT = "mcp-server-git"
GIT_VERSION = "2026.10.19"
FETCH_SECONDS = 120.0

NPM_PACKAGE = f"npm:{FILESYSTEM}@{FILESYSTEM_VERSION}"
DENO_OPTIONS = ("--quiet", "--no-config", "--no-lock")


@dataclass(frozen=True)
class DemoServer:
    """One server: how to fetch it, how to run it, and its description.

    `fetch` lists alternative commands; the first that succeeds is enough.
    """

    name: str
    package: str
    description: str
    fetch: Sequence[Sequence[str]]
    command: Sequence[str]
    cwd: Path | None = None

    @property
    def entry(self) -> dict[str, object]:
        """Its entry in an `mcpServers` file; its hints are trusted."""
        program, *args = self.command
        entry: dict[str, object] = {"command": program, "args": args, "trust": "hints"}
        return entry if self.cwd is None else {**entry, "cwd": str(self.cwd)}


def demo_servers(folder: Path) -> tuple[DemoServer, DemoServer]:
    """The official filesystem and git servers, on one folder. Raises DemoFailed."""
    return _filesystem(folder), _git(folder)


def _filesystem(folder: Path) -> DemoServer:
    """The permissions are relative to `cwd`: in a list of paths, Deno has no escape for commas.

    Variables that it reads are answered as unset.
    """
    deno = str(_deno())
    walls = ("--no-prompt", "--allow-read=.", "--allow-write=.", "--ignore-env")
    return DemoServer(
        name="fs",
        package=f"{FILESYSTEM} {FILESYSTEM_VERSION}",
        description="from npm, run by Deno: may read and write one folder, no network, no programs",
        fetch=((deno, "cache", *DENO_OPTIONS, NPM_PACKAGE),),
        command=(deno, "run", *DENO_OPTIONS, *walls, NPM_PACKAGE, "."),
        cwd=folder,
    )


def _git(folder: Path) -> DemoServer:
    """Once fetched, it starts offline, without another look-up."""
    uvx = _uvx()
    nothing = ("--from", f"{GIT}=={GIT_VERSION}", "python", "-c", "")
    return DemoServer(
        name="git",
        package=f"{GIT} {GIT_VERSION}",
        description="from PyPI, run by uvx: may use that one repository",
        fetch=((*uvx, "--offline", *nothing), (*uvx, *nothing)),
        command=(*uvx, "--offline", f"{GIT}@{GIT_VERSION}", "--repository", str(folder)),
    )


def fetch(server: DemoServer) -> None:
    """Download a server; fast when it is cached. Raises DemoFailed."""
    said = ""
    for command in server.fetch:
        try:
            ran = subprocess.run(  # noqa: S603 - pinned packages, by their own package managers
                command,
                env={**SYSTEM_CERTIFICATES, **os.environ, "NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=FETCH_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            said = f"no end within {FETCH_SECONDS:g} s"
            continue
        if ran.returncode == 0:
            return
        said = ran.stderr.strip()
    raise DemoFailed(
        f"{server.package} could not be fetched: {said}\n"
        "The first demo needs the network (npm and PyPI); later ones do not."
    )


def write_config(file: Path, servers: Sequence[DemoServer]) -> None:
    """Write the `mcpServers` file for the gateway."""
    document = {"mcpServers": {server.name: server.entry for server in servers}}
    file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _deno() -> Path:
    deno = Path(sys.executable).with_name("deno")
    if not deno.exists():
        raise DemoFailed(f"{deno} is missing: install the Python package deno")
    return deno


def _uvx() -> tuple[str, ...]:
    """`uvx` beside the uv that runs this process, else the one beside this Python or on PATH, else
    that uv's `tool run`."""
    uv = os.environ.get("UV")
    for program in (uv, sys.executable):
        if program and (beside := Path(program).with_name("uvx")).exists():
            return (str(beside),)
    if uvx := shutil.which("uvx"):
        return (uvx,)
    if uv := uv or shutil.which("uv"):
        return (uv, "tool", "run")
    raise DemoFailed(
        "neither uvx nor uv was found: install uv (pip install 'pml-stack[local]' has it)"
    )
