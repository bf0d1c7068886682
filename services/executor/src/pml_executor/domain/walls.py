"""What a sandbox process is started with: everything it may do is on this page."""

from collections.abc import Sequence

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
)

ENVIRONMENT = {
    # Modules that programs are loaded as would be kept on disk; nothing of a run outlives it.
    "DENO_DIR": "/dev/null/none",
    "DENO_EMIT_CACHE_MODE": "disable",
    "DENO_CACHE_DB_MODE": "memory",
    "DENO_NO_UPDATE_CHECK": "1",
    "NO_COLOR": "1",
    "TZ": "UTC",
}
"""The whole environment of a sandbox process: none of the executor's own crosses."""


def sandbox_argv(
    deno: str, host: str, *, max_heap_mib: int, leash: Sequence[str] = ()
) -> tuple[str, ...]:
    """The command of one process: `leash` (what ends it with its parent), Deno with no permission
    at all, and `host`, the path of runtime/host.ts."""
    v8_flags = ",".join((*_V8_FLAGS, f"--max-old-space-size={max_heap_mib}"))
    return (*leash, deno, "run", *_FLAGS, f"--v8-flags={v8_flags}", host)
