"""How much a request may say beside its body: httptools takes any length."""

from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_BYTES: Final = 64 * 1024
"""Of a head, or of what follows a body, that does not end; as much as h11 takes."""


class BoundedHeads(HttpToolsProtocol):
    """Reads requests; one whose head does not end is answered with 400, and its connection ends."""

    _got_on = False
    _read = 0

    def on_headers_complete(self) -> None:
        """A head is whole."""
        self._got_on = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """More of a body."""
        self._got_on = True
        super().on_body(body)

    def data_received(self, data: bytes) -> None:
        """Bytes came; they count where neither a head nor a body got on by them."""
        self._got_on = False
        super().data_received(data)
        self._read = 0 if self._got_on else self._read + len(data)
        if self._read > MOST_BYTES and not self.transport.is_closing():
            self.send_400_response("The request's line and headers are too long.")
