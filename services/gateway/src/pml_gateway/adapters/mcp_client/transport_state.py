"""Observed state of one transport."""

import asyncio
from dataclasses import dataclass, field


@dataclass
class TransportState:
    """Observed state of a connection's transport: whether it ended, the last output of the server,
    and the server's fault that ended it. `version` is the protocol's, once it is agreed on;
    `refused` the HTTP status by which a server does without Streamable HTTP.
    It `needs_login` once it answered 401."""

    ended: asyncio.Event = field(default_factory=asyncio.Event)
    last_output: str = ""
    fault: str = ""
    version: str = ""
    refused: int | None = None
    needs_login: bool = False

    def note_output(self, text: str) -> None:
        """Store output that may explain the end."""
        self.last_output = text

    def note_fault(self, fault: str) -> None:
        """Store why the connection ends."""
        self.fault = fault
