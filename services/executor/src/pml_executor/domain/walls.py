"""Command line and environment of a sandbox process, and the walls around it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_FLAGS = (
    "--no-prompt",
    "--no-remote",
    "--no-npm",
    "--cached-only",
    "--no-config",
    "--no-lock",
    "--no-code-cache",
    "--unstable-worker-options",
)
_V8_FLAGS = (
    "--single-threaded",
    "--max-lazy",
    "--disallow-code-generation-from-strings",
    # too small for any real module: importing one would give access to WebAssembly, shared memory
    "--wasm-max-module-size=16",
)

IMPORT_MAP = "--import-map="
"""Precedes the import map in a command line."""

ENVIRONMENT = {
    # Else the modules of programs would be cached on disk; nothing of a run outlives it.
    "DENO_DIR": "/dev/null/none",
    "DENO_EMIT_CACHE_MODE": "disable",
    "DENO_CACHE_DB_MODE": "memory",
    "DENO_NO_UPDATE_CHECK": "1",
    "NO_COLOR": "1",
    "TZ": "UTC",
}
"""The whole environment of a sandbox process: none of the executor's own crosses."""


def sandbox_argv(
    deno: str,
    runtime: str,
    *,
    max_heap_mib: int,
    prefix: Sequence[str] = (),
) -> tuple[str, ...]:
    """Build the command of one process: `prefix` (ends it with its parent), Deno with no permission
    at all and none of Node's modules, and the host in the folder `runtime`."""
    v8_flags = ",".join((*_V8_FLAGS, f"--max-old-space-size={max_heap_mib}"))
    fixed = (f"{IMPORT_MAP}{runtime}/imports.json", f"--v8-flags={v8_flags}")
    return (*prefix, deno, "run", *_FLAGS, *fixed, f"{runtime}/host.js")


Outer = Literal["bubblewrap", "landlock", "seccomp", "none"]
"""Best first: namespaces and an empty root; rules on paths; only a filter of system calls."""
Wanted = Literal["required", "best_effort", "off"]

ADVICE = (
    "install bubblewrap and allow unprivileged user namespaces, or run on a kernel with Landlock"
    " (5.13 or newer, x86-64 or arm64); PML_EXECUTOR_WALLS=best_effort starts without"
)


@dataclass(frozen=True)
class Walls:
    """Confinement besides Deno's own permissions; `refused` lists why better walls are missing."""

    outer: Outer
    further: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def closed(self) -> bool:
        """Whether file system, network and other processes are out of reach without Deno."""
        return self.outer in ("bubblewrap", "landlock")

    def __str__(self) -> str:
        walls = ", ".join((self.outer, *self.further))
        return f"{walls} ({'; '.join(self.refused)})" if self.refused else walls


NO_WALLS = Walls("none")


def missing_confinement(status: str, outer: Outer) -> str | None:
    """Return the confinement that is missing by the text of /proc/<pid>/status; None if none is."""
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    wanted = {"NoNewPrivs": "1", "Seccomp": "2"}
    if outer != "seccomp":  # with some capabilities, others' memory is read through /proc
        wanted["CapEff"] = "0" * 16
    for name, value in wanted.items():
        found = fields.get(name, "").strip()
        if found != value:
            return f"{name} is {found or 'not reported'}, not {value}"
    return None
