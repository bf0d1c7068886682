"""The gateway as it is, on a bus on which it dies exactly where a plan says.

`PML_NATS_URL=… python -m tests.crashes.mortal_gateway FOLDER`

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
from tests.crashes.crash_plan import Diaries
from tests.crashes.stopping import until_stopped

Told = ApprovalRequested | ApprovalDecided | RunWorkflow | WorkflowFinished


class MortalGatewayBus(NatsBus):
    """What a gateway has stored it tells over its bus: there it can be stopped."""

    diaries: Diaries
    told: Counter[tuple[UUID, str]]

    async def publish(self, message: Message, *, expected_last: int | None = None) -> int:
        if not isinstance(message, Told):
            return await super().publish(message, expected_last=expected_last)
        workflow, name = message.workflow_id, catalog.type_of(message).name
        self.told[workflow, name] += 1
        deed = f"{name} {self.told[workflow, name]}"
        self._comes_to(workflow, f"{deed}: before")
        sequence = await super().publish(message, expected_last=expected_last)
        self._comes_to(workflow, f"{deed}: after")
        return sequence

    def _comes_to(self, workflow: UUID, point: str) -> None:
        if self.diaries.dooms_gateway(workflow, point):
            os.kill(os.getpid(), signal.SIGKILL)


async def live(folder: Path) -> None:
    """Be a gateway until SIGTERM."""
    settings = GatewaySettings()
    bus = await MortalGatewayBus.connect(
        settings.nats_url, service="gateway", identity=identity_of("gateway", settings)
    )
    bus.diaries, bus.told = Diaries(folder), Counter()
    await until_stopped(bus, serve(settings, bus))


if __name__ == "__main__":
    set_up_logging("gateway", "INFO")
    uvloop.run(live(Path(sys.argv[1])))
