"""The stack of deploy/compose.yml, as one project of its own for a session of tests."""

import asyncio
import json
import secrets
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from testcontainers.compose import DockerCompose

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.ports import free_port
from tests.e2e.harness import Harness, tools_listed
from tools.compose.secrets import approver_key, make_secrets
from tools.images.build import ROOT, version
from tools.images.engine import Engine

DEPLOY = ROOT / "deploy"
READY_WITHIN_S = 4 * PATIENCE_S
UNWELL = ("starting", "unhealthy")
OWN_SETTINGS = ("PML_", "COMPOSE_", "OTEL_")
"""Beginnings of variables that would win over the file of settings."""


@dataclass
class ContainerStack(Harness):
    """The running stack. `container` names are those of Compose without the project:
    `executor-1`."""

    compose: DockerCompose
    engine: Engine
    project: str
    url: str
    traces_url: str
    secrets: Path
    http: httpx2.AsyncClient
    folder: Path

    @property
    def approver_key(self) -> Path:
        """The file of the approver's key."""
        return approver_key(self.secrets)

    async def kill(self, container: str) -> None:
        """SIGKILL a container; Docker does not restart one that was killed by hand."""
        await self.docker("kill", "--signal", "KILL", self._named(container))
        await eventually(lambda: self._says(container, "{{.State.Running}}", "false"))

    async def start(self, container: str) -> None:
        """Start a killed container and wait until it is healthy."""
        await self.docker("start", self._named(container))
        await self.healthy(container)

    async def healthy(self, container: str) -> None:
        """Wait until a container is healthy."""
        healthy = "{{.State.Health.Status}}", "healthy"
        await eventually(lambda: self._says(container, *healthy), within=READY_WITHIN_S)

    async def unwell_are_none(self) -> bool:
        """Assert that no container is unhealthy or still starting."""
        found = {state: await self.running(f"health={state}") for state in UNWELL}
        assert not any(found.values()), found
        return True

    async def running(self, *filters: str) -> set[str]:
        """The containers that run, of those that pass the filters of `docker ps`."""
        of_project = f"label=com.docker.compose.project={self.project}"
        given = (word for each in (of_project, *filters) for word in ("--filter", each))
        names = await self.docker("ps", "--format", "{{.Names}}", *given)
        return {name.removeprefix(f"{self.project}-") for name in names.split()}

    async def docker(self, *words: str) -> str:
        """Run a command of docker and return its output. Raises CalledProcessError."""
        return await asyncio.to_thread(self.engine.run, *words)

    async def _says(self, container: str, what: str, expected: str) -> bool:
        return await self.docker("inspect", "--format", what, self._named(container)) == expected

    def _named(self, container: str) -> str:
        return f"{self.project}-{container}"


@asynccontextmanager
async def container_stack(
    engine: Engine, home: Path, files: Sequence[Path], profiles: Sequence[str]
) -> AsyncGenerator[ContainerStack]:
    """Run the stack of these files until the context exits; its volumes go, too."""
    settings = _settings(home, profiles)
    file = home / "settings.env"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    compose = DockerCompose(
        DEPLOY,
        [str(each) for each in (*files, Path(__file__).with_name("compose.yml"))],
        env_file=str(file),
        wait=False,  # gives up at a part that is unhealthy until those that it needs are ready
        profiles=list(profiles),
        docker_command_path=engine.docker,
    )
    url = f"http://127.0.0.1:{settings['PML_PORT']}"
    try:
        await asyncio.to_thread(compose.start)
        async with httpx2.AsyncClient(base_url=url, timeout=2 * PATIENCE_S) as http:
            stack = ContainerStack(
                compose=compose,
                engine=engine,
                project=settings["COMPOSE_PROJECT_NAME"],
                url=url,
                traces_url=f"http://127.0.0.1:{settings['PML_TRACES_PORT']}",
                secrets=Path(settings["PML_SECRETS"]),
                http=http,
                folder=Path(settings["PML_COUNTED"]),
            )
            await eventually(stack.unwell_are_none, within=READY_WITHIN_S)
            await eventually(lambda: tools_listed(http), within=READY_WITHIN_S)
            yield stack
    finally:
        await asyncio.to_thread(_end, compose, home)


def _settings(home: Path, profiles: Sequence[str]) -> dict[str, str]:
    """Write the files that containers mount, and return the variables of the project."""
    make_secrets(home / "secrets")
    gateway, counted = home / "gateway", home / "counted"
    for folder in (gateway, counted):
        folder.mkdir()
    home.chmod(0o711)
    gateway.chmod(0o755)
    counted.chmod(0o777)
    servers = {"counting": {"url": "http://counting:8000/mcp", "trust": "hints"}}
    (gateway / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (gateway / "policy.json").write_text(json.dumps({"rules": []}))
    return {
        "COMPOSE_PROJECT_NAME": f"pml-test-{secrets.token_hex(4)}",
        "PML_VERSION": version(),
        "PML_SECRETS": str(home / "secrets"),
        "PML_GATEWAY_FILES": str(gateway),
        "PML_COUNTED": str(counted),
        "PML_PORT": str(free_port()),
        "PML_TRACES_PORT": str(free_port()),
        "PML_GRAFANA_PORT": str(free_port()),
        "PML_REGISTRY_VECTOR_INDEX": "qdrant" if "qdrant" in profiles else "postgres",
    }


def _end(compose: DockerCompose, home: Path) -> None:
    """Keep the logs beside the data, and remove everything, without a drain."""
    try:
        logs, _ = compose.get_logs()
        (home / "containers.log").write_text(logs, encoding="utf-8")
        subprocess.run((*compose.docker_compose_command(), "kill"), capture_output=True, check=True)
    finally:
        compose.stop()
