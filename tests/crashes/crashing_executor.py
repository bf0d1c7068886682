"""The real executor on a bus where it dies or freezes at planned points.

`PML_NATS_URL=… PML_SIGNING_KEY=… PML_TRUSTED_KEYS=… python -m tests.crashes.crashing_executor
FOLDER`
"""

import asyncio
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import uvloop

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import Handler
from pml_common.bus.run_journal import OWNER
from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import Consumer, QueryType
from pml_common.contracts.executor import RunFinished, RunWorkflow, TraceRecorded, WorkflowParked
from pml_common.contracts.gateway import CallTool
from pml_common.service import identity_of
from pml_common.telemetry.logs import set_up_logging
from pml_executor.app import serve
from pml_executor.settings import ExecutorSettings
from tests.crashes.crash_plan import CommandRun, CrashLog
from tests.crashes.stopping import until_stopped

M = TypeVar("M", bound=Message)
Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)

CALL_ARRIVES_WITHIN_S = PATIENCE_S
ENDS = {"parking": "parked", "finish": "done"}
"""The end of a command run, by its last append."""
NEVER_S = 3600.0
"""An executor dies with whatever nobody waited for, and its appends have the same numbers in every
run."""

_command_run: ContextVar[CommandRun | None] = ContextVar("command_run", default=None)


class CrashingBus(NatsBus):
    """All external actions of an executor use its bus, so it can be stopped there."""

    crash_log: CrashLog

    async def check_until(self, give_up: float) -> None:
        """Do nothing: the test has set the consumers' terms."""

    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        """Handle one command at a time, so that a crash affects only one run."""

        async def logged(message: M) -> Sequence[Message]:
            assert isinstance(message, RunWorkflow | WorkflowAccepted)
            command_run = CommandRun(self.crash_log, message.workflow_id)
            _command_run.set(command_run)  # its journal publishes in this context
            try:
                facts = await handler(message)
            except BaseException as error:
                command_run.finish(type(error).__name__)
                raise
            command_run.finish(command_run.end or await self._end_of(message))
            return facts

        await super().consume(replace(consumer, max_in_flight=1), logged)

    async def publish(self, message: Message) -> int:
        command_run = _command_run.get()
        what = _action(message)
        if command_run is None or what is None:
            return await super().publish(message)
        action = command_run.next_action(what)
        action.reach("before")
        sequence = await super().publish(message)
        action.reach("after")
        command_run.end = ENDS.get(what)
        return sequence

    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        command_run = _command_run.get()
        if command_run is None or not isinstance(query, CallTool):
            return await super().request(query_type, query, timeout=timeout)
        action = command_run.next_action("call")
        action.reach("before")
        asking = asyncio.create_task(super().request(query_type, query, timeout=timeout))
        if action.will_crash("during"):
            await self._arrives(query)
        action.reach("during")
        answer = await asking
        action.reach("after")
        return answer

    async def _end_of(self, message: Message) -> str:
        """The end of a command run that published nothing: its run has ended, or is parked."""
        stored = await self.history(message.scope, message.entity, of=OWNER)
        return ENDS["finish" if isinstance(stored[-1].message, RunFinished) else "parking"]

    async def _arrives(self, query: CallTool) -> None:
        """Wait until the tool has received the call."""
        # Imported here: loading the test library takes half as long as an executor's start.
        from libs.pml_local.tests.support.harness import eventually

        call = {"tool": query.tool, "args": query.args}
        await eventually(lambda: call in self.crash_log.calls(), within=CALL_ARRIVES_WITHIN_S)


def _action(message: Message) -> str | None:
    match message:
        case TraceRecorded():
            return "append" if message.mark is None else "mark"
        case WorkflowParked():
            return "parking"
        case RunFinished():
            return "finish"
        case _:
            return None


async def run_service(folder: Path) -> None:
    """Run an executor until SIGTERM."""
    settings = ExecutorSettings(executor_pool_size=1, executor_journal_flush_s=NEVER_S)
    bus = await CrashingBus.connect(
        settings.nats_url,
        service="executor",
        identity=identity_of("executor", settings),
        sockets=settings.sockets,
    )
    bus.crash_log = CrashLog(folder)
    await until_stopped(bus, serve(settings, bus))


if __name__ == "__main__":
    set_up_logging("executor", "INFO")
    uvloop.run(run_service(Path(sys.argv[1])))
