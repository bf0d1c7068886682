"""The real analyzer on a bus that changes analyses of programs whose intent requests a lie:
`lie:<which>:<code that runs instead>`. Run like the analyzer itself, with its keys.

`python -m tests.binding.lying_analyzer`
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pml_analyzer.app import serve
from pml_analyzer.settings import AnalyzerSettings
from pml_common.bus.port import Bus, Handler
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer
from pml_common.health import Checks
from pml_common.service import run_service
from tests.binding.lies import LIES, Lie

M = TypeVar("M", bound=Message)
PREFIX = "lie:"


class LyingBus:
    """A bus whose handlers publish false analyses."""

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
