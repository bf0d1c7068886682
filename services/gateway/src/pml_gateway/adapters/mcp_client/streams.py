"""Stream protocols of the MCP SDK's transports and sessions, which the SDK keeps private."""

from types import TracebackType
from typing import Protocol, Self, TypeVar

T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class ReadStream(Protocol[T_co]):
    """A stream of received items; an async iterator and context manager."""

    async def receive(self) -> T_co: ...

    async def aclose(self) -> None: ...

    def __aiter__(self) -> "ReadStream[T_co]": ...

    async def __anext__(self) -> T_co: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None: ...


class WriteStream(Protocol[T_contra]):
    """A stream of items to send; a context manager."""

    async def send(self, item: T_contra, /) -> None: ...

    async def aclose(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None: ...
