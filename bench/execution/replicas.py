"""Further executors and gateways beside those of an embedded stack."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from execution.callers import STUB

from pml_local.folder import DataFolder
from pml_local.parts import start_on_free_port
from pml_local.ports import LOOPBACK, free_port
from pml_local.services import Service, pml_services
from pml_local.stack import Stack


@dataclass(frozen=True)
class Replica:
    """A further process of a service."""

    service: str
    pid: int
    port: int

    @property
    def url(self) -> str:
        """The URL that it serves."""
        return f"http://{LOOPBACK}:{self.port}"


@asynccontextmanager
async def replica(stack: Stack, name: str, env: Mapping[str, str]) -> AsyncGenerator[Replica]:
    """Run another process of a service, ready to work, until the context exits; its name is the
    service's and a number."""
    service = name.partition(" ")[0]
    [spec] = [each for each in pml_services() if each.name == service]
    given = {**os.environ, **STUB, **env, **stack.credentials(service)}
    named = replace(spec, name=name)
    part = Service(named, free_port(), DataFolder(stack.home), lambda: given)
    process = await start_on_free_port(part)
    try:
        yield Replica(service, process.pid, part.port)
    finally:
        await process.stop()
