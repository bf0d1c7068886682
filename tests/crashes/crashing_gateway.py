"""The real gateway on a bus where it dies at planned points.

`PML_NATS_URL=… python -m tests.crashes.crashing_gateway FOLDER`

`run-workflow 2: before` is the point before it publishes the second command to run a workflow.
"""

import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import uvloop

from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import BatchHandler, Handled
from pml_common.contracts import catalog
from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_common.contracts.gateway import ApprovalDecided, ApprovalRequested, WorkflowFinished
from pml_common.service import identity_of
from pml_common.telemetry.logs import set_up_logging
from pml_gateway.app import serve
from pml_gateway.settings import GatewaySettings
from tests.crashes.crash_plan import CrashLog
from tests.crashes.stopping import until_stopped

M = TypeVar("M", bound=Message)
RunOutcome = WorkflowAccepted | ApprovalRequested | ApprovalDecided | RunWorkflow | WorkflowFinished


class CrashingGatewayBus(NatsBus):
    """A gateway publishes what it has decided, and stores what was accepted and how it ended, over
    its bus, so it can be stopped there. `storing run-finished: after` is the point after it has
    stored an end and before it acknowledges it."""

    crash_log: CrashLog
    outcome: Counter[tuple[UUID, str]]

    async def check_until(self, give_up: float) -> None:
        """Do nothing: the test has set the executor's consumers' terms."""

    async def publish(self, message: Message) -> int:
        if not isinstance(message, RunOutcome):
            return await super().publish(message)
        workflow, name = message.workflow_id, catalog.type_of(message).name
        self.outcome[workflow, name] += 1
        action = f"{name} {self.outcome[workflow, name]}"
        self._reach(workflow, f"{action}: before")
        sequence = await super().publish(message)
        self._reach(workflow, f"{action}: after")
        return sequence

    async def consume_batches(self, consumer: Consumer[M], handler: BatchHandler[M]) -> None:
        async def handle(messages: Sequence[M]) -> Handled:
            known = [each for each in messages if isinstance(each, RunFinished | WorkflowAccepted)]
            for each in known:
                self._reach(each.workflow_id, f"storing {catalog.type_of(each).name}: before")
            handled = await handler(messages)
            for each in known:
                self._reach(each.workflow_id, f"storing {catalog.type_of(each).name}: after")
            return handled

        await super().consume_batches(consumer, handle)

    def _reach(self, workflow: UUID, point: str) -> None:
        if self.crash_log.take_gateway_crash(workflow, point):
            os.kill(os.getpid(), signal.SIGKILL)


async def run_service(folder: Path) -> None:
    """Run a gateway until SIGTERM."""
    settings = GatewaySettings()
    bus = await CrashingGatewayBus.connect(
        settings.nats_url,
        service="gateway",
        identity=identity_of("gateway", settings),
        sockets=settings.sockets,
    )
    bus.crash_log, bus.outcome = CrashLog(folder), Counter()
    await until_stopped(bus, serve(settings, bus))


if __name__ == "__main__":
    set_up_logging("gateway", "INFO")
    uvloop.run(run_service(Path(sys.argv[1])))
