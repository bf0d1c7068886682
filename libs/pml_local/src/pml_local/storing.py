"""Restarting a NATS that stores nothing although its disk has room again.

A stream whose disk was full for one write answers no publish until the server is restarted. Without
room a restart would not help, so until then it is left alone.
"""

import asyncio
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from pml_local.nats import NatsServer
from pml_local.supervised import SupervisedPart

log = logging.getLogger(__name__)

LOOK_EVERY = 10.0
ENOUGH_BYTES = 32 * 1024 * 1024
"""Less is no room: the next write might fail again."""

ENOUGH_LOOKS = 2
LONGEST_PAUSE = 600.0


@dataclass(frozen=True, slots=True)
class Refusals:
    """How many looks in a row found it storing nothing with room to do so, and how many restarts
    have not helped."""

    looks: int = 0
    restarts: int = 0

    def after(self, refusal: str | None) -> "Refusals":
        """The count after one more look."""
        return Refusals() if refusal is None else Refusals(self.looks + 1, self.restarts)

    @property
    def too_many(self) -> bool:
        """Whether to restart it: once may have been a slow disk."""
        return self.looks >= ENOUGH_LOOKS

    def restarted(self) -> "Refusals":
        """The count after a restart."""
        return Refusals(0, self.restarts + 1)

    def pause(self, every: float) -> float:
        """Seconds until the next look, more after each restart that did not help."""
        return min(LONGEST_PAUSE, every * 2**self.restarts)


async def keep_storing(
    nats: NatsServer, kept: SupervisedPart, folder: Path, every: float = LOOK_EVERY
) -> None:
    """Look every `every` seconds, and restart where that helps, for as long as this runs."""
    refusals = Refusals()
    while True:
        await asyncio.sleep(refusals.pause(every))
        if kept.process is None:
            continue
        try:
            free = shutil.disk_usage(folder).free
        except OSError as error:
            log.warning("nobody knows how much room %s has: %s", folder, error)
            continue
        # Not tried on a full disk: that would stop streams that nobody has written to meanwhile.
        refusal = await nats.refusal() if free >= ENOUGH_BYTES else None
        refusals = refusals.after(refusal)
        if refusal is not None and refusals.too_many:
            await kept.replace(f"{refusal}; its disk has {free:,} bytes left")
            refusals = refusals.restarted()
