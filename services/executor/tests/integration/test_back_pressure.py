"""An executor takes no more runs than it can have processes."""

from pathlib import Path

import pytest

from libs.pml_common.tests.support.harness import write_key_files
from pml_common.bus.memory import MemoryBus
from pml_common.bus.port import Handler, M
from pml_common.contracts.catalog import EXECUTOR_ON_RUN_WORKFLOW, Consumer
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
    most: int, tmp_path: Path
) -> None:
    trusted = Path(write_key_files(tmp_path, "executor")["PML_TRUSTED_KEYS"])
    settings = ExecutorSettings(
        executor_walls="off",
        executor_pool_size=0,
        executor_max_processes=most,
        trusted_keys=trusted,
    )
    bus = Noting()
    async with serve(settings, bus):
        assert bus.at_once[EXECUTOR_ON_RUN_WORKFLOW.durable] == most
