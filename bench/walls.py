"""Cost of each kind of walls for a sandbox process, from its start until it is ready and killed.

The kinds alternate, so that the machine's load affects all alike; milliseconds.
`uv run python bench/walls.py [rounds]`
"""

import asyncio
import resource
import statistics
import sys
from pathlib import Path
from time import perf_counter

from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.walls import (
    Build,
    SandboxConfig,
    WallsUnavailable,
    bubblewrap_command,
    landlock_command,
    seccomp_command,
    unwalled_command,
)
from pml_executor.settings import ExecutorSettings

KINDS: dict[str, Build] = {
    "none": unwalled_command,
    "seccomp": seccomp_command,
    "landlock": landlock_command,
    "bubblewrap": bubblewrap_command,
}


def cpu_ms() -> float:
    """CPU milliseconds of this process and its ended children."""
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) * 1000


async def start(command: DenoCommand) -> tuple[float, float]:
    """Wall time until ready, and CPU until the end."""
    before, began = cpu_ms(), perf_counter()
    sandbox = await DenoSandbox.start(command)
    took = (perf_counter() - began) * 1000
    await sandbox.close()
    return took, cpu_ms() - before


async def main(rounds: int) -> None:
    """Print one line for each kind that is available."""
    settings = ExecutorSettings()
    site = SandboxConfig(
        deno=Path(settings.executor_deno),
        runtime=settings.executor_runtime,
        max_message_bytes=settings.limits.max_message_bytes,
        max_heap_mib=settings.executor_max_heap_mib,
        resources=settings.resources,
    )
    commands: dict[str, DenoCommand] = {}
    for name, build in KINDS.items():
        try:
            commands[name] = await build(site)
        except WallsUnavailable as error:
            print(f"no {name}: {error}")
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            found[name].append(await start(command))
    for name, pairs in found.items():
        wall, cpu = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:<12} until ready p50 {wall:6.1f}   CPU p50 {cpu:5.1f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))
