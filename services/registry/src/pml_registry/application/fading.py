"""Fading of edges that no run shows any longer."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pml_registry.ports.graph import EdgeStore

FADE_EVERY_S: Final = 3600.0
"""Seconds between two looks for edges that are due."""

_AT_ONCE: Final = 500
_MOST_PASSES: Final = 200


@dataclass(frozen=True)
class Fading:
    """Stores how far edges have faded; graphs, which are kept for seconds, take it up by
    themselves."""

    edges: EdgeStore
    now: Callable[[], datetime]

    async def look(self) -> None:
        """Look at every edge that is due, at most 100,000 of each kind. Raises
        StorageUnavailable."""
        for _ in range(_MOST_PASSES):
            if await self.edges.fade(self.now(), _AT_ONCE) < _AT_ONCE:
                return
