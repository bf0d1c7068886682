"""Free disk space: without it no new work is accepted, so that accepted work can be stored to its
end."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from pml_common.health import detail
from pml_gateway.domain.api.errors import Unavailable

MIB = 1024 * 1024
_BELIEVED_S = 1.0


def free_bytes(folder: Path) -> int | None:
    """Return the free bytes of the folder's disk; None if they cannot be read."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


class DiskSpace:
    """Checks at most once a second whether each folder's disk has `min_free` bytes left."""

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
        """Return a detail for the health check; the process stays healthy, as accepted work
        continues."""
        return detail(self._look())

    def require(self) -> None:
        """Raise Unavailable if new work could fill a disk."""
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
            f"the disk of {folder} has {free:,} bytes left, less than the "
            f"{self._min_free:,} bytes that new work needs: free some, or lower "
            "PML_GATEWAY_MIN_FREE_MIB; accepted work continues"
        )
