"""The life of a service process, as its supervisor sees it."""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from pml_common.bus.testing import key_files
from pml_common.signing import SigningKey
from pml_local.ports import free_port
from pml_local.testing import eventually

pytestmark = pytest.mark.integration

SERVICE = """
from contextlib import asynccontextmanager
from pml_common.service import ServiceSettings, run_service

@asynccontextmanager
async def serve(settings, bus):
    async def kettle():
        return None
    yield {"kettle": kettle}
    print("closed what it opened", flush=True)

run_service("learner", ServiceSettings(), serve)
"""


@asynccontextmanager
async def running(program: str = SERVICE, **env: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    with tempfile.TemporaryDirectory() as folder:
        told = {**os.environ, **key_files(Path(folder), "learner"), **env}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            program,
            env={name: value for name, value in told.items() if value},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_service_gets_ready_and_ends_in_order_at_a_signal(
    nats_url: str, number: signal.Signals
) -> None:
    port = free_port()
    async with running(PML_NATS_URL=nats_url, PML_HEALTH_PORT=str(port)) as process:
        async with httpx2.AsyncClient() as client:

            async def ready() -> bool:
                try:
                    answer = await client.get(f"http://127.0.0.1:{port}/healthz")
                except httpx2.TransportError:
                    return False
                checks = {"nats": "ok", "kettle": "ok"}
                return answer.json() == {"status": "ok", "pid": process.pid, "checks": checks}

            await eventually(ready, within=20.0)
        process.send_signal(number)
        out, err = await asyncio.wait_for(process.communicate(), 20.0)
        assert process.returncode == 0, err.decode()
        assert out.decode() == "closed what it opened\n"
        assert "INFO learner pml_common.service trace=- ready" in err.decode()


async def test_what_the_operator_has_to_mend_is_told_in_a_line(nats_url: str) -> None:
    refusing = SERVICE.replace(
        "    async def kettle():",
        "    raise CannotStart('the kettle has no water')\n    async def kettle():",
    ).replace("import ServiceSettings", "import CannotStart, ServiceSettings")
    async with running(refusing, PML_NATS_URL=nats_url) as process:
        _, err = await asyncio.wait_for(process.communicate(), 20.0)
        assert process.returncode == 1
        assert "cannot start: the kettle has no water" in err.decode()
        assert "Traceback" not in err.decode()


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"PML_SIGNING_KEY": ""}, "PML_SIGNING_KEY"),
        ({"PML_SIGNING_KEY": "/nowhere/learner.pem"}, "/nowhere/learner.pem"),
        ({"PML_TRUSTED_KEYS": "/dev/null"}, "/dev/null"),
    ],
)
async def test_a_service_without_keys_does_not_start(env: dict[str, str], said: str) -> None:
    async with running(**env) as process:
        _, err = await asyncio.wait_for(process.communicate(), 20.0)
        assert process.returncode == 1
        assert "cannot start" in err.decode()
        assert said in err.decode()
        assert "Traceback" not in err.decode()


async def test_a_service_whose_key_nobody_trusts_does_not_start(tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.pem"
    SigningKey.generate("learner").save(stranger)
    async with running(PML_SIGNING_KEY=str(stranger)) as process:
        _, err = await asyncio.wait_for(process.communicate(), 20.0)
        assert process.returncode == 1
        assert "nobody would believe what it publishes" in err.decode()


async def test_a_service_that_finds_no_bus_gives_up_in_time() -> None:
    env = {"PML_NATS_URL": "nats://127.0.0.1:1", "PML_START_PATIENCE_S": "0.3"}
    async with running(**env) as process:
        _, err = await asyncio.wait_for(process.communicate(), 20.0)
        assert process.returncode != 0
        assert "BusUnavailable" in err.decode()
