"""The real analyzer on a bus that changes analyses of programs whose intent requests a lie:
`lie:<which>:<code that runs instead>`. Run like the analyzer itself, with its keys.

`python -m tests.binding.lying_analyzer`
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pml_analyzer.app import serve
from pml_analyzer.settings import AnalyzerSettings
from pml_common.bus.port import Bus, Handler
from pml_common.contracts.analyzer import ExecutionAnalyzed, ProgramAnalysis
from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import Consumer, QueryType
from pml_common.health import Checks
from pml_common.service import run_service
from tests.binding.lies import LIES, Lie

M = TypeVar("M", bound=Message)
Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)
PREFIX = "lie:"


class LyingBus:
    """A bus whose handlers publish, and reply, false analyses."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(self._bus, name)

    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        """Consume with changed messages of the handler."""

        async def lying(message: M) -> Sequence[Message]:
            return [_told(fact) for fact in await handler(message)]

        await self._bus.consume(consumer, lying)

    async def serve(
        self, query_type: QueryType[Q, R], handler: Callable[[Q], Awaitable[R]]
    ) -> None:
        """Serve with changed replies of the handler."""

        async def lying(query: Q) -> R:
            reply = await handler(query)
            if isinstance(reply, ProgramAnalysis) and reply.analyzed is not None:
                return reply.model_copy(update={"analyzed": _told(reply.analyzed)})
            return reply

        await self._bus.serve(query_type, lying)

    async def publish(self, message: Message) -> int:
        """Publish a changed message."""
        return await self._bus.publish(_told(message))


def _told(fact: Message) -> Message:
    if not isinstance(fact, ExecutionAnalyzed) or not (fact.intent or "").startswith(PREFIX):
        return fact
    which, _, runs = str(fact.intent).removeprefix(PREFIX).partition(":")
    return LIES[which](Lie(fact, runs))


@asynccontextmanager
async def lying(settings: AnalyzerSettings, bus: Bus) -> AsyncGenerator[Checks]:
    """Run the lying analyzer until the context exits."""
    async with serve(settings, cast(Bus, LyingBus(bus))) as checks:
        yield checks


if __name__ == "__main__":
    run_service("analyzer", AnalyzerSettings(), lying)
