"""Readiness of services: the service itself must answer, not just its port."""

import os
import sys
from pathlib import Path

import pytest

from pml_local.folder import open_folder
from pml_local.parts import start_part
from pml_local.ports import free_port
from pml_local.services import Service, ServiceSpec

pytestmark = pytest.mark.integration

FAKE = Path(__file__).with_name("fake_service.py")


async def test_another_process_on_the_port_is_not_taken_for_the_service(stack_home: Path) -> None:
    spec = ServiceSpec("learner", (sys.executable, str(FAKE)))
    with open_folder(stack_home) as folder:
        service = Service(spec, free_port(), folder, lambda: os.environ)
        process = await start_part(service)
        try:
            assert await service.problem(process.pid) is None
            expected = f"process {process.pid} answers on port {service.port}"
            assert await service.problem(process.pid + 1) == expected
        finally:
            await process.stop()
