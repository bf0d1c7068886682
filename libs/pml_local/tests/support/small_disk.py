"""A disk that a test can fill: an in-memory filesystem, where mounting one is permitted."""

import errno
import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S

MIB = 1024 * 1024
_MOST_MOUNT_S = PATIENCE_S


class SmallDisk:
    """A small filesystem mounted at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    @property
    def free(self) -> int:
        """Free bytes."""
        return shutil.disk_usage(self.folder).free

    def fill(self, leave: int = 0) -> None:
        """Use up all but `leave` bytes; others may write meanwhile."""
        with self._filler.open("ab") as file:
            room = self.free - leave
            while room > 0:
                try:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, room)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    room //= 2
                else:
                    room = self.free - leave

    def make_room(self) -> None:
        """Free the space that `fill` took."""
        self._filler.unlink()


@contextmanager
def small_disk(folder: Path, mib: int) -> Generator[SmallDisk]:
    """Mount a filesystem of `mib` MiB on an empty folder; skips the test where that is
    impossible."""
    folder.mkdir(exist_ok=True)
    options = ["-t", "tmpfs", "-o", f"size={mib}m,mode=0711", "tmpfs", str(folder)]
    if (why := _run(["mount", *options])) is not None:
        pytest.skip(f"no filesystem can be mounted here: {why}")
    try:
        yield SmallDisk(folder)
    finally:
        _run(["umount", "--lazy", str(folder)])


def _run(argv: list[str]) -> str | None:
    """Run a program; returns its error message, or None on success."""
    program = shutil.which(argv[0])
    if program is None:
        return f"there is no {argv[0]}"
    ended = subprocess.run(
        [program, *argv[1:]], capture_output=True, text=True, timeout=_MOST_MOUNT_S, check=False
    )
    return ended.stderr.strip() or f"code {ended.returncode}" if ended.returncode else None
