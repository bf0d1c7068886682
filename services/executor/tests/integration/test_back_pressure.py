"""An executor takes no more runs than it can have processes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from libs.pml_common.tests.support.builders import example
from libs.pml_common.tests.support.harness import write_key_files
from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.port import Handler, M
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import (
    EXECUTOR_ON_RUN_WORKFLOW,
    EXECUTOR_ON_WORKFLOW_ACCEPTED,
    RUN_WORKFLOW,
    WORKFLOW_ACCEPTED,
    Consumer,
)
from pml_common.contracts.executor import RunWorkflow
from pml_common.testing.memory_bus import MemoryBus
from pml_executor import app
from pml_executor.app import serve
from pml_executor.settings import ExecutorSettings

pytestmark = pytest.mark.integration


class Noting(MemoryBus):
    """Records how many messages at a time each consumer takes."""

    def __init__(self) -> None:
        super().__init__()
        self.at_once: dict[str, int] = {}

    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        self.at_once[consumer.durable] = consumer.max_in_flight
        await super().consume(consumer, handler)


@pytest.mark.parametrize("most", [1, 12])
async def test_an_executor_takes_as_many_runs_at_a_time_as_it_may_have_processes(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted = Path(write_key_files(tmp_path, "executor")["PML_TRUSTED_KEYS"])
    settings = ExecutorSettings(
        executor_walls="off",
        executor_pool_size=0,
        executor_max_processes=most,
        trusted_keys=trusted,
    )
    bus, begun, release = Noting(), list[UUID](), asyncio.Event()

    async def run(command: RunWorkflow, _: object, *, redelivered: bool) -> Sequence[Message]:
        begun.append(command.workflow_id)
        await release.wait()
        return ()

    monkeypatch.setattr(app, "on_run_workflow", run)
    async with serve(settings, bus):
        for consumer in (EXECUTOR_ON_RUN_WORKFLOW, EXECUTOR_ON_WORKFLOW_ACCEPTED):
            assert bus.at_once[consumer.durable] == most
        gateway = MemoryBus(bus.broker)
        for _ in range(most):
            accepted, command = example(WORKFLOW_ACCEPTED), example(RUN_WORKFLOW)
            fresh = {"workflow_id": uuid4()}
            await gateway.publish(accepted.model_copy(update={**fresh, "event_id": uuid4()}))
            await gateway.publish(command.model_copy(update={**fresh, "command_id": uuid4()}))
        await eventually(lambda: len(begun) == most)
        release.set()
        await eventually(lambda: len(begun) == 2 * most)
