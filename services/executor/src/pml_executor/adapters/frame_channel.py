"""Messages to and from a child process in frames."""

import asyncio
import secrets
from collections import deque

from pml_executor.adapters.child import Child
from pml_executor.domain import frames
from pml_executor.domain.frames import ForgedOutput, FrameDecoder, Origin
from pml_executor.domain.protocol import (
    HostMessage,
    Order,
    ProgramMessage,
    ProtocolViolation,
    host_nonce,
    parse_frame,
)
from pml_executor.ports import SandboxBroken

_READ_BYTES = 65_536
_STDERR_LINES = 40


class FrameChannel:
    """Frames on stdin and stdout; the end of stderr is retained."""

    def __init__(self, child: Child, secret: str, max_message_bytes: int) -> None:
        self._child = child
        self._decoder = FrameDecoder(secret, max_message_bytes)
        self._inbox: deque[ProgramMessage | HostMessage] = deque()
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._stderr_reader = asyncio.create_task(self._read_stderr())

    def write(self, body: bytes, to: Origin | None = None) -> None:
        """Send a body; only the first one has no addressee."""
        self._child.write(frames.encode(body, to))

    def send_order(self, order: Order, nonce: str = "") -> None:
        """Send an order to the host."""
        self.write(f"{order} {nonce}".rstrip().encode(), "host")

    async def check(self) -> str:
        """Exchange nonces and return the host's. The host starts nothing without its nonce, so a
        start shows that nothing else reads its input. Raises SandboxBroken."""
        nonce = secrets.token_hex(16)
        self.send_order("check", nonce)
        try:
            return host_nonce(nonce, await self.read())
        except ProtocolViolation as error:
            raise SandboxBroken("internal", str(error)) from error

    async def read(self) -> ProgramMessage | HostMessage | None:
        """Return the next message; None once the output has ended. Raises SandboxBroken."""
        while not self._inbox:
            data = await self._child.stdout.read(_READ_BYTES)
            if not data:
                return None
            try:
                for frame in self._decoder.feed(data):
                    self._inbox += parse_frame(frame)
            except ForgedOutput as error:
                text = f"the program wrote to its process's output: {error}"
                raise SandboxBroken("rejected", text) from error
            except ProtocolViolation as error:
                raise SandboxBroken("rejected", str(error)) from error
        return self._inbox.popleft()

    @property
    def silent(self) -> bool:
        """Whether no output is unread, and nothing was ever written to stderr."""
        return not self._inbox and not self._stderr and not self._decoder.midway

    async def stderr_tail(self, timeout: float) -> str:
        """Return the last lines of stderr, once it has ended or the timeout is over."""
        await asyncio.wait({self._stderr_reader}, timeout=timeout)
        return " ".join(self._stderr)

    async def close(self) -> None:
        """Stop reading."""
        self._stderr_reader.cancel()
        await asyncio.gather(self._stderr_reader, return_exceptions=True)

    async def _read_stderr(self) -> None:
        while data := await self._child.stderr.read(_READ_BYTES):
            self._stderr += data.decode(errors="replace").splitlines()
