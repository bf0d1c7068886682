"""Room on the disks that hold what is accepted: no new work without it, so that what is under way
can be stored to its end."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from pml_common.health import detail
from pml_gateway.domain.api.errors import Unavailable

MIB = 1024 * 1024
_BELIEVED_S = 1.0


def free_bytes(folder: Path) -> int | None:
    """What its disk has left for us; None where nobody can tell."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


class DiskRoom:
    """Knows whether each folder's disk has `min_free` bytes left; looks once a second at most."""

    def __init__(
        self,
        folders: Sequence[Path],
        min_free: int,
        free: Callable[[Path], int | None] = free_bytes,
    ) -> None:
        self._folders = folders
        self._min_free = min_free
        self._free = free
        self._found: str | None = None
        self._due = 0.0

    async def check(self) -> str | None:
        """A health check: what was accepted goes on, so nothing is wrong with this process."""
        return detail(self._look())

    def require(self) -> None:
        """Raise Unavailable where new work could fill a disk."""
        found = self._look()
        if found is not None:
            raise Unavailable(found)

    def _look(self) -> str | None:
        now = asyncio.get_running_loop().time()
        if now >= self._due:
            self._found = next(filter(None, map(self._lack, self._folders)), None)
            self._due = now + _BELIEVED_S
        return self._found

    def _lack(self, folder: Path) -> str | None:
        free = self._free(folder)
        if free is None or free >= self._min_free:
            return None
        return (
            f"the disk of {folder} has {free:,} bytes left, and new work is taken from "
            f"{self._min_free:,} bytes on: free some, or lower PML_GATEWAY_MIN_FREE_MIB; what was "
            "accepted goes on"
        )
