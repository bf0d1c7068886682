"""The mark that all versions of a database have been signed."""

from pathlib import Path


class SignedMark:
    """A file outside of the database: whoever writes to that alone cannot have other versions
    signed. Without a path it counts as set."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @property
    def is_set(self) -> bool:
        """Whether versions without a signature are refused."""
        return self._path is None or self._path.exists()

    def set(self) -> None:
        """Make the file."""
        if self._path is not None:
            self._path.touch(mode=0o600)
