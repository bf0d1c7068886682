"""Messages to and from a child process that speaks in frames."""

import asyncio
import secrets
from collections import deque

from pml_executor.adapters.child import Child
from pml_executor.domain import frames
from pml_executor.domain.frames import ForgedOutput, FrameDecoder, Origin
from pml_executor.domain.protocol import (
    Breach,
    HostSaid,
    Order,
    ProgramMessage,
    host_nonce,
    read,
)
from pml_executor.ports import SandboxBroken

_READ_BYTES = 65_536
_STDERR_LINES = 40


class Wire:
    """Frames on stdin and stdout; what comes on stderr is kept."""

    def __init__(self, child: Child, secret: str, max_message_bytes: int) -> None:
        self._child = child
        self._decoder = FrameDecoder(secret, max_message_bytes)
        self._inbox: deque[ProgramMessage | HostSaid] = deque()
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._stderr_reader = asyncio.create_task(self._read_stderr())

    def write(self, body: bytes, to: Origin | None = None) -> None:
        """Say something, the first time to nobody in particular."""
        self._child.write(frames.encode(body, to))

    def order(self, order: Order, nonce: str = "") -> None:
        """Tell the host what to do."""
        self.write(f"{order} {nonce}".rstrip().encode(), "host")

    async def check(self) -> str:
        """The host's own nonce, once one of ours has gone there and back; the host starts nothing
        without it, so an answer to that shows that it gets all of its input. Raises
        SandboxBroken."""
        nonce = secrets.token_hex(16)
        self.order("check", nonce)
        try:
            return host_nonce(nonce, await self.read())
        except Breach as error:
            raise SandboxBroken("internal", str(error)) from error

    async def read(self) -> ProgramMessage | HostSaid | None:
        """What is said next; None once the output has ended. Raises SandboxBroken."""
        while not self._inbox:
            data = await self._child.stdout.read(_READ_BYTES)
            if not data:
                return None
            try:
                for frame in self._decoder.feed(data):
                    self._inbox += read(frame)
            except ForgedOutput as error:
                text = f"the program wrote to its process's output: {error}"
                raise SandboxBroken("rejected", text) from error
            except Breach as error:
                raise SandboxBroken("rejected", str(error)) from error
        return self._inbox.popleft()

    @property
    def silent(self) -> bool:
        """Whether nothing is left to be read, nor was ever said on stderr."""
        return not self._inbox and not self._stderr and not self._decoder.midway

    async def last_words(self, timeout: float) -> str:
        """The end of stderr, once that has ended or the time is over."""
        await asyncio.wait({self._stderr_reader}, timeout=timeout)
        return " ".join(self._stderr)

    async def close(self) -> None:
        """Stop reading."""
        self._stderr_reader.cancel()
        await asyncio.gather(self._stderr_reader, return_exceptions=True)

    async def _read_stderr(self) -> None:
        while data := await self._child.stderr.read(_READ_BYTES):
            self._stderr += data.decode(errors="replace").splitlines()
