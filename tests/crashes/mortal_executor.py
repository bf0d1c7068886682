"""The executor as it is, on a bus on which it dies, or freezes, exactly where a plan says.

`PML_NATS_URL=… PML_SIGNING_KEY=… PML_TRUSTED_KEYS=… python -m tests.crashes.mortal_executor FOLDER`
"""

import asyncio
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import uvloop

from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import Handler
from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import Consumer, QueryType
from pml_common.contracts.executor import RunFinished, RunWorkflow, TraceRecorded, WorkflowParked
from pml_common.contracts.gateway import CallTool
from pml_common.service import identity_of
from pml_common.telemetry.setup import set_up_logging
from pml_executor.app import serve
from pml_executor.settings import ExecutorSettings
from tests.crashes.crash_plan import Diaries, Life
from tests.crashes.stopping import until_stopped

M = TypeVar("M", bound=Message)
Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)

ACK_WAIT_S = 2.0
"""How long the server waits for a sign of life: less than in the product, for the sake of time."""
CALL_ARRIVES_WITHIN_S = 10.0
ENDS = {"parking": "parked", "fact": "done"}
"""How a life ends once it has stated this."""

_life: ContextVar[Life | None] = ContextVar("life", default=None)


class MortalBus(NatsBus):
    """Everything an executor does to the world goes over its bus: there it can be stopped."""

    diaries: Diaries

    async def ensure(self) -> None:
        """Nothing: the stack has made what is needed, and a consumer's terms are ours to set."""

    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        """One command at a time, so that its executor's death is nobody else's."""

        async def live(message: M) -> Sequence[Message]:
            assert isinstance(message, RunWorkflow)
            life = Life(self.diaries, message.workflow_id)
            _life.set(life)  # the bus publishes the facts in this very context
            try:
                return await handler(message)
            except BaseException as error:
                life.ends(type(error).__name__)
                raise

        await super().consume(replace(consumer, ack_wait_s=ACK_WAIT_S, max_in_flight=1), live)

    async def publish(self, message: Message, *, expected_last: int | None = None) -> int:
        life = _life.get()
        what = _deed(message)
        if life is None or what is None:
            return await super().publish(message, expected_last=expected_last)
        deed = life.does(what)
        deed.comes_to("before")
        sequence = await super().publish(message, expected_last=expected_last)
        deed.comes_to("after")
        if what in ENDS:
            life.ends(ENDS[what])
        return sequence

    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        life = _life.get()
        if life is None or not isinstance(query, CallTool):
            return await super().request(query_type, query, timeout=timeout)
        deed = life.does("call")
        deed.comes_to("before")
        asking = asyncio.create_task(super().request(query_type, query, timeout=timeout))
        if deed.is_doomed("during"):
            await self._arrives(query)
        deed.comes_to("during")
        answer = await asking
        deed.comes_to("after")
        return answer

    async def _arrives(self, query: CallTool) -> None:
        """Until the tool has got the call."""
        # Imported here: the test library takes as long to load as half an executor.
        from libs.pml_local.tests.support.harness import eventually

        call = {"tool": query.tool, "args": query.args}
        await eventually(lambda: call in self.diaries.calls(), within=CALL_ARRIVES_WITHIN_S)


def _deed(message: Message) -> str | None:
    match message:
        case TraceRecorded():
            return "append" if message.mark is None else "mark"
        case WorkflowParked():
            return "parking"
        case RunFinished():
            return "fact"
        case _:
            return None


async def live(folder: Path) -> None:
    """Be an executor until SIGTERM."""
    settings = ExecutorSettings(executor_pool_size=1)
    bus = await MortalBus.connect(
        settings.nats_url, service="executor", identity=identity_of("executor", settings)
    )
    bus.diaries = Diaries(folder)
    await until_stopped(bus, serve(settings, bus))


if __name__ == "__main__":
    set_up_logging("executor", "INFO")
    uvloop.run(live(Path(sys.argv[1])))
