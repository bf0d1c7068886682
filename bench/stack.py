"""Start-up time of the embedded stack: on a new data folder, and again on the same.

`uv run python bench/stack.py`
"""

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter

from pml_local.composition import StackOptions
from pml_local.events import Event, PartReady
from pml_local.stack import embedded_stack


async def start_once(home: Path) -> tuple[float, float, dict[str, float]]:
    """Seconds to start, seconds to stop, seconds of each part."""
    parts: dict[str, float] = {}

    def note(event: Event) -> None:
        if isinstance(event, PartReady):
            parts[event.name] = event.seconds

    began = perf_counter()
    async with embedded_stack(StackOptions(home=home), note):
        up = perf_counter() - began
        began = perf_counter()
    return up, perf_counter() - began, parts


async def main() -> None:
    """Measure once cold and three times warm."""
    with tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as folder:
        for label in ("new folder", "again", "again", "again"):
            up, down, parts = await start_once(Path(folder) / "data")
            slowest = ", ".join(f"{n} {s:.2f}" for n, s in sorted(parts.items(), key=_seconds))
            print(f"{label}: up in {up:.2f} s, down in {down:.2f} s ({slowest})")


def _seconds(part: tuple[str, float]) -> float:
    return -part[1]


if __name__ == "__main__":
    asyncio.run(main())
