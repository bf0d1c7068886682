"""The life cycle of a service process, from outside."""

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

from libs.pml_common.tests.support.harness import write_key_files
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.nats_accounts import NatsAccount
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.signing import SigningKey
from pml_local.ports import free_port

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
        told = {**os.environ, **write_key_files(Path(folder), "learner"), **env}
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
                checks = {"nats": "ok", "consumers": "ok", "clock": "ok", "kettle": "ok"}
                return answer.json() == {"status": "ok", "pid": process.pid, "checks": checks}

            await eventually(ready)
        process.send_signal(number)
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        assert process.returncode == 0, err.decode()
        assert out.decode() == "closed what it opened\n"
        assert "INFO learner pml_common.service trace=- ready" in err.decode()


async def test_readiness_ends_before_the_service(nats_url: str) -> None:
    port = free_port()
    told = {"PML_NATS_URL": nats_url, "PML_HEALTH_PORT": str(port), "PML_SHUTDOWN_DELAY_S": "600"}
    async with running(**told) as process, httpx2.AsyncClient() as client:

        async def answers(status: int) -> bool:
            try:
                ready = await client.get(f"http://127.0.0.1:{port}/readyz")
            except httpx2.TransportError:
                return False
            return ready.status_code == status

        await eventually(lambda: answers(200))
        process.send_signal(signal.SIGTERM)
        await eventually(lambda: answers(503))
        assert (await client.get(f"http://127.0.0.1:{port}/healthz")).status_code == 200


async def test_a_running_service_reports_the_shortfall_of_its_streams(nats_url: str) -> None:
    port = free_port()
    env = {"PML_NATS_URL": nats_url, "PML_HEALTH_PORT": str(port), "PML_STREAM_REPLICAS": "3"}
    async with running(**env), httpx2.AsyncClient() as client:

        async def told() -> bool:
            try:
                answer = await client.get(f"http://127.0.0.1:{port}/healthz")
            except httpx2.TransportError:
                return False
            said = answer.json()["checks"]["nats"]
            return answer.status_code == 200 and said.startswith("1 of 3 configured replicas: ")

        await eventually(told)


async def test_streams_that_nobody_has_provisioned_end_the_start_with_one_log_line(
    bare_account: NatsAccount,
) -> None:
    async with running(PML_NATS_URL=bare_account.url, PML_START_PATIENCE_S="1") as process:
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        assert process.returncode == 1
        assert "cannot start: the streams on NATS are not provisioned: " in err.decode()
        assert "Run `pml bus provision` as the operator" in err.decode()
        assert "Traceback" not in err.decode()


async def test_a_fault_of_the_configuration_is_one_log_line(nats_url: str) -> None:
    refusing = SERVICE.replace(
        "    async def kettle():",
        "    raise CannotStart('the kettle has no water')\n    async def kettle():",
    ).replace("import ServiceSettings", "import CannotStart, ServiceSettings")
    async with running(refusing, PML_NATS_URL=nats_url) as process:
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
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
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        assert process.returncode == 1
        assert "cannot start" in err.decode()
        assert said in err.decode()
        assert "Traceback" not in err.decode()


async def test_a_service_with_an_untrusted_key_does_not_start(tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.pem"
    SigningKey.generate("learner").save(stranger)
    async with running(PML_SIGNING_KEY=str(stranger)) as process:
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        assert process.returncode == 1
        assert "no service would accept what it publishes" in err.decode()


async def test_a_service_that_finds_no_bus_gives_up_in_time() -> None:
    env = {"PML_NATS_URL": "nats://127.0.0.1:1", "PML_START_PATIENCE_S": "0.3"}
    async with running(**env) as process:
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        assert process.returncode != 0
        assert "BusUnavailable" in err.decode()
