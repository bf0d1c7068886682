"""A service started as its manifest says, on real NATS and Postgres."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from libs.pml_common.tests.support.harness import write_key_files
from libs.pml_local.tests.support.databases import as_service
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.nats_accounts import NatsAccount
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.ports import free_port
from tests.deploy.manifests import of_kind, pod_of, settings_of

pytestmark = pytest.mark.integration


@asynccontextmanager
async def _started(
    command: list[str], environment: Mapping[str, str]
) -> AsyncGenerator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command[1:],
        env={"PATH": os.environ["PATH"], **environment},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_pod_is_ready_once_the_bus_is_provisioned_and_its_schema_is_migrated(
    bare_account: NatsAccount, postgres_dsn: str, tmp_path: Path
) -> None:
    deployments = {one["metadata"]["name"]: one for one in of_kind("dev", "Deployment")}
    jobs = {one["metadata"]["name"].partition(".")[0]: one for one in of_kind("dev", "Job")}
    [container] = pod_of(deployments["pml-learner"])["spec"]["containers"]
    [migrating] = pod_of(jobs["pml-learner-migrate"])["spec"]["containers"]
    [provisioning] = pod_of(jobs["pml-provision"])["spec"]["containers"]
    secrets, port = tmp_path / "secrets", free_port()
    secrets.mkdir()
    (secrets / "PML_NATS_URL").write_text(bare_account.url_of("learner"))
    (secrets / "PML_POSTGRES_DSN").write_text(as_service(postgres_dsn, "learner"))
    places = {"PML_SECRETS_DIR": str(secrets), "PML_HEALTH_PORT": str(port)}
    settings = settings_of("dev", deployments["pml-learner"])
    owners = {"PML_POSTGRES_DSN": postgres_dsn}
    environment = {**settings, **write_key_files(tmp_path, "learner"), **places}

    async def answers(path: str) -> int | None:
        async with httpx2.AsyncClient() as client:
            try:
                return (await client.get(f"http://127.0.0.1:{port}{path}")).status_code
            except httpx2.TransportError:
                return None

    async def ready() -> bool:
        return await answers("/readyz") == 200

    async def stopping() -> bool:
        return await answers("/readyz") == 503

    async with _started(container["command"], environment) as pod:
        operators = {
            **settings_of("dev", jobs["pml-provision"]),
            "PML_NATS_URL": bare_account.url,
            "PML_SECRETS_DIR": str(secrets),
        }
        for command, given in (
            (migrating["command"], {**environment, **owners, "PML_HEALTH_PORT": "0"}),
            (provisioning["command"], operators),
        ):
            async with _started(command, given) as job:
                assert await answers("/readyz") is None
                assert await asyncio.wait_for(job.wait(), PATIENCE_S) == 0
        await eventually(ready)
        assert await answers("/healthz") == 200
        pod.terminate()
        await eventually(stopping)
