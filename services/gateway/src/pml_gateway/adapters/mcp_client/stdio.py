"""MCP over the pipes of a child process: like the SDK's client, with lines of bounded length.

The SDK buffers an unfinished line of any length, and copies all of it with every piece.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, TextIO

import anyio
import anyio.abc
import anyio.lowlevel
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from pml_gateway.adapters.mcp_client.lines import LineBuffer, LineTooLong
from pml_gateway.adapters.mcp_client.unreadable import answer_to
from pml_gateway.domain.servers.server_config import StdioServer, child_environment

log = logging.getLogger(__name__)

_Inbound = SessionMessage | Exception
_Ends = tuple[MemoryObjectReceiveStream[_Inbound], MemoryObjectSendStream[SessionMessage]]

_FLUSH_S: Final = 0.5
_GRACE_S: Final = 2.0
"""Time for a server to exit once its stdin is closed; again between SIGTERM and SIGKILL."""
_POLL_S: Final = 0.01
_SKIPPED_LOGGED: Final = 10
"""Lines of one connection that are logged because they are no messages."""
_SKIPPED_SHOWN: Final = 200
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def child_streams(
    name: str,
    server: StdioServer,
    environment: Mapping[str, str],
    errlog: TextIO,
    longest_line: int,
    failed: Callable[[str], None],
) -> AsyncGenerator[_Ends]:
    """Start a server and open streams to it; the process has ended when the context exits.

    `failed` is called with the reason if the server violates the transport's rules. Raises OSError
    if the command cannot be started.
    """
    process = await anyio.open_process(
        [server.command, *server.args],
        env=get_default_environment() | child_environment(server, environment),
        stderr=errlog,
        cwd=server.cwd,
        start_new_session=True,
    )
    # No await until the task group is entered: cancelled in between, the process would be left.
    inbound, reads = anyio.create_memory_object_stream[_Inbound](0)
    writes, outbound = anyio.create_memory_object_stream[SessionMessage](0)
    pipes = _Pipes(name, process, inbound, outbound, longest_line, failed)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pipes.read)
        tasks.start_soon(pipes.write)
        try:
            yield reads, writes
        finally:
            with anyio.CancelScope(shield=True):
                reads.close()
                writes.close()
                with anyio.move_on_after(_FLUSH_S):
                    await pipes.flushed.wait()
                await pipes.stop()
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()


class _Pipes:
    """Copies messages between a process and a session."""

    def __init__(
        self,
        name: str,
        process: anyio.abc.Process,
        inbound: MemoryObjectSendStream[_Inbound],
        outbound: MemoryObjectReceiveStream[SessionMessage],
        longest_line: int,
        failed: Callable[[str], None],
    ) -> None:
        assert process.stdin is not None  # noqa: S101 - started with pipes
        assert process.stdout is not None  # noqa: S101
        self._name = name
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._inbound = inbound
        self._outbound = outbound
        self._lines = LineBuffer(longest_line)
        self._failed = failed
        self._faulty = False
        self._waiting: set[mcp_types.RequestId] = set()
        self._skipped = 0
        self.flushed = anyio.Event()

    async def read(self) -> None:
        """Pass each line to the session as a message; after its end, read and discard, so that a
        server that still writes can exit."""
        with suppress(*_GONE, anyio.EndOfStream):
            async with self._inbound:
                await self._forward()
            while not self._faulty:
                await self._stdout.receive()

    async def _forward(self) -> None:
        try:
            async for piece in self._stdout:
                for line in self._lines.feed(piece):
                    message = self._message(line)
                    if message is not None:
                        await self._inbound.send(SessionMessage(message))
        except LineTooLong as error:
            self._faulty = True
            self._failed(str(error))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the session is gone

    def _message(self, line: bytes) -> mcp_types.JSONRPCMessage | None:
        """Return the message in a line; an error where the line answers a request and cannot be
        read, None where it answers none."""
        try:
            message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as fault:
            message = answer_to(line, fault, self._waiting)
            if message is None:
                self._skip(line)
        if isinstance(message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
            self._waiting.discard(message.id or "")
        return message

    def _skip(self, line: bytes) -> None:
        """Log a line that is no message; a server that writes many has them logged up to a
        limit."""
        self._skipped += bool(line.strip())
        if line.strip() and self._skipped <= _SKIPPED_LOGGED:
            shown = line[:_SKIPPED_SHOWN].decode(errors="backslashreplace")
            more = " (further ones are not logged)" if self._skipped == _SKIPPED_LOGGED else ""
            log.warning("%s: skipped a line that is no message: %r%s", self._name, shown, more)

    async def write(self) -> None:
        """Write each message of the session as a line; a broken pipe ends the session."""
        try:
            async with self._outbound:
                async for sent in self._outbound:
                    if isinstance(sent.message, mcp_types.JSONRPCRequest):
                        self._waiting.add(sent.message.id)
                    text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._stdin.send(text.encode() + b"\n")
        except _GONE:
            await self._inbound.aclose()
        finally:
            self.flushed.set()

    async def stop(self) -> None:
        """Terminate the process and its descendants unless it exits by itself."""
        await _close(self._stdin)
        if self._faulty or not await self._exits():
            await terminate_posix_process_tree(self._process, _GRACE_S)
            if not await self._exits():
                log.warning("process %d did not exit after SIGKILL", self._process.pid)
        await _close(self._stdout)
        for stream in (self._inbound, self._outbound):
            await stream.aclose()
        _close_transport(self._process)

    async def _exits(self) -> bool:
        """Whether the process exits within the grace period. Not `wait()`: that waits for the
        pipes, too, which a child of the server may hold."""
        with anyio.move_on_after(_GRACE_S):
            while self._process.returncode is None:  # noqa: ASYNC110 - there is no event for it
                await anyio.sleep(_POLL_S)
        return self._process.returncode is not None


async def _close(stream: anyio.abc.AsyncResource) -> None:
    with suppress(*_GONE):
        await stream.aclose()


def _close_transport(process: anyio.abc.Process) -> None:
    """Close asyncio's own transport, which stays open while a child of the server holds a pipe;
    anyio has no API for it."""
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if (close := getattr(transport, "close", None)) is not None:
        with suppress(PermissionError):  # of a process that changed its user
            close()
