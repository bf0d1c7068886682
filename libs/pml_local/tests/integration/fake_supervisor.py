"""`pml up` with fake services: `fake_supervisor.py <home> [mode of the worker]`."""

import asyncio
import sys
from pathlib import Path

from libs.pml_local.tests.integration import fake_service
from pml_local.composition import StackOptions
from pml_local.services import ServiceSpec
from pml_local.supervisor import run_until_stopped

SERVICE = (sys.executable, "-m", fake_service.__name__)
SERVICES = (
    ServiceSpec("worker", (*SERVICE, *sys.argv[2:]), stop_within=600.0),
    ServiceSpec("gateway", SERVICE, port_variable="PML_GATEWAY_PORT"),
)

if __name__ == "__main__":
    asyncio.run(run_until_stopped(StackOptions(home=Path(sys.argv[1]), services=SERVICES)))
