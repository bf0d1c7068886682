"""The real gateway on a bus where it dies at planned points.

`PML_NATS_URL=… python -m tests.crashes.crashing_gateway FOLDER`

`run-workflow 2: before` is the point before it publishes the second command to run a workflow.
"""

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from uuid import UUID

import uvloop

from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import ApprovalDecided, ApprovalRequested, WorkflowFinished
from pml_common.service import identity_of
from pml_common.telemetry.setup import set_up_logging
from pml_gateway.app import serve
from pml_gateway.settings import GatewaySettings
from tests.crashes.crash_plan import CrashLog
from tests.crashes.stopping import until_stopped

RunOutcome = ApprovalRequested | ApprovalDecided | RunWorkflow | WorkflowFinished


class CrashingGatewayBus(NatsBus):
    """A gateway publishes stored messages over its bus, so it can be stopped there."""

    crash_log: CrashLog
    outcome: Counter[tuple[UUID, str]]

    async def publish(self, message: Message, *, expected_last: int | None = None) -> int:
        if not isinstance(message, RunOutcome):
            return await super().publish(message, expected_last=expected_last)
        workflow, name = message.workflow_id, catalog.type_of(message).name
        self.outcome[workflow, name] += 1
        action = f"{name} {self.outcome[workflow, name]}"
        self._reach(workflow, f"{action}: before")
        sequence = await super().publish(message, expected_last=expected_last)
        self._reach(workflow, f"{action}: after")
        return sequence

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
