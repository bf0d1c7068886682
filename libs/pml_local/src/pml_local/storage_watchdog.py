"""Restarts a NATS server that stores nothing although its disk has room again.

A stream whose disk was full during one write answers no publish until the server is restarted.
Without room a restart would not help, so the server is left alone until then.
"""

import asyncio
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from pml_local.nats import NatsServer
from pml_local.supervised import SupervisedPart

log = logging.getLogger(__name__)

STORAGE_PROBE_INTERVAL = 10.0
MIN_FREE_BYTES = 32 * 1024 * 1024
"""With less, the next write might fail again."""

MIN_REFUSALS = 2
MAX_PROBE_INTERVAL = 600.0


@dataclass(frozen=True, slots=True)
class Refusals:
    """Consecutive probes that found it storing nothing with room to do so, and restarts that did
    not help."""

    probes: int = 0
    restarts: int = 0

    def after(self, refusal: str | None) -> "Refusals":
        """The count after one more probe."""
        return Refusals() if refusal is None else Refusals(self.probes + 1, self.restarts)

    @property
    def too_many(self) -> bool:
        """Whether to restart it; a single refusal may be a slow disk."""
        return self.probes >= MIN_REFUSALS

    def restarted(self) -> "Refusals":
        """The count after a restart."""
        return Refusals(0, self.restarts + 1)

    def pause(self, every: float) -> float:
        """Seconds until the next probe, doubled after each restart that did not help."""
        return min(MAX_PROBE_INTERVAL, every * 2**self.restarts)


async def watch_storage(
    nats: NatsServer, part: SupervisedPart, folder: Path, every: float = STORAGE_PROBE_INTERVAL
) -> None:
    """Probe every `every` seconds until cancelled, and restart the server where that helps."""
    refusals = Refusals()
    while True:
        await asyncio.sleep(refusals.pause(every))
        if part.process is None:
            continue
        try:
            free = shutil.disk_usage(folder).free
        except OSError as error:
            log.warning("free space of %s is unknown: %s", folder, error)
            continue
        # Not probed on a full disk: that would stop streams without any writes of their own.
        refusal = await nats.refusal() if free >= MIN_FREE_BYTES else None
        refusals = refusals.after(refusal)
        if refusal is not None and refusals.too_many:
            await part.replace(f"{refusal}; its disk has {free:,} bytes left")
            refusals = refusals.restarted()
