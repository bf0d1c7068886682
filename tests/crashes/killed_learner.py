"""A learner in a process of its own, forked from one that has imported it, to be killed."""

import asyncio
import os
from dataclasses import replace
from multiprocessing import parent_process
from pathlib import Path
from typing import TypeVar

from typing_extensions import override

from libs.pml_common.tests.support.harness import SelfProvisioningBus
from libs.pml_local.tests.support.harness import stack_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import BatchHandler
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer
from pml_learner.app import serve
from pml_learner.settings import LearnerSettings

ACK_WAIT_S = 0.5
"""Soon enough that the next learner gets what the last one had."""

M = TypeVar("M", bound=Message)


class ImpatientBus(SelfProvisioningBus):
    """A bus whose messages are soon delivered to another replica."""

    @override
    async def consume_batches(self, consumer: Consumer[M], handler: BatchHandler[M]) -> None:
        await super().consume_batches(replace(consumer, ack_wait_s=ACK_WAIT_S), handler)


def learn_until_killed(nats_url: str, dsn: str, home: Path, bus: type[NatsBus]) -> None:
    """Run the learner, with the keys below `home`; it ends with its parent."""
    asyncio.run(_learn(nats_url, dsn, home, bus))


async def _learn(nats_url: str, dsn: str, home: Path, kind: type[NatsBus]) -> None:
    parent = parent_process()
    if parent is not None:
        asyncio.get_running_loop().add_reader(parent.sentinel, os._exit, 1)
    bus = await kind.connect(nats_url, service="learner", identity=stack_identity(home))
    async with serve(LearnerSettings(postgres_dsn=dsn), bus):
        await asyncio.Event().wait()
