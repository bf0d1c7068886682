"""Splits bytes that arrive in pieces into lines of bounded length."""

from collections.abc import Generator


class LineTooLong(Exception):
    """More bytes than allowed arrived without the end of a line."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"it wrote a line of more than {limit} bytes")


class LineBuffer:
    """Buffers at most `limit` bytes of an unfinished line, beside the piece being fed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest: list[bytes] = []
        self._length = 0

    def feed(self, piece: bytes) -> Generator[bytes]:
        """Yield the lines that are complete now, without their ends. Raises LineTooLong."""
        *ended, rest = piece.split(b"\n")
        for part in ended:
            yield self._take(part)
        self._keep(rest)

    def _take(self, part: bytes) -> bytes:
        self._keep(part)
        line = b"".join(self._rest)
        self._rest, self._length = [], 0
        return line

    def _keep(self, part: bytes) -> None:
        self._length += len(part)
        if self._length > self._limit:
            self._rest = []
            raise LineTooLong(self._limit)
        self._rest.append(part)
