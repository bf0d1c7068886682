"""Which parts a stack consists of, on which ports, with which environment."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pml_local.account import database_account
from pml_local.approver import KEY_FILE_VARIABLE, default_key_file, user_name, write_key
from pml_local.errors import StackError
from pml_local.folder import DataFolder, default_home
from pml_local.nats import NatsServer
from pml_local.ports import LOOPBACK, free_port, port_or_free, require_port
from pml_local.postgres import PostgresServer
from pml_local.services import GATEWAY, GATEWAY_PORT, Service, ServiceSpec, pml_services

SECRET_VARIABLE = "PML_GATEWAY_SECRET"  # noqa: S105 - the name of a variable
MCP_SERVERS_VARIABLE = "PML_MCP_SERVERS"
POLICY_VARIABLE = "PML_GATEWAY_POLICY_FILE"
APPROVER_VARIABLE = "PML_GATEWAY_APPROVER"
APPROVER_HASH_VARIABLE = "PML_GATEWAY_APPROVER_KEY_SHA256"


@dataclass(frozen=True, slots=True)
class StackOptions:
    """What to run and where."""

    home: Path = field(default_factory=default_home)
    gateway_port: int | None = None
    """None: 8080, or a free one when that is taken."""
    mcp_servers: Path | None = None
    """An `mcpServers` file; None: PML_MCP_SERVERS, else `<home>/mcp.json` if it exists."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Set for every service, over the inherited environment."""
    services: Sequence[ServiceSpec] = field(default_factory=pml_services)
    """One of them is called `gateway`; its port makes the stack's URL."""
    approver_key: Path | None = None
    """Where the approver's key is written; None: see `approver.default_key_file`."""


@dataclass(frozen=True, slots=True)
class Composition:
    """The parts, not started yet."""

    nats: NatsServer
    postgres: PostgresServer
    services: Sequence[Service]
    approver_key: Path

    @property
    def url(self) -> str:
        """The gateway's address."""
        gateway = next(service for service in self.services if service.name == GATEWAY)
        return f"http://{LOOPBACK}:{gateway.port}"


def compose(options: StackOptions, folder: DataFolder) -> Composition:
    """Choose ports and build the parts; raises StackError. Blocks: call it in a thread."""
    account = database_account()
    approver_key = options.approver_key or default_key_file(folder.home)
    nats = NatsServer(folder.nats, folder.log("nats"), folder.secret("nats"))
    postgres = PostgresServer(
        folder.postgres(account), folder.log("postgres"), folder.secret("postgres"), account=account
    )
    everyone = {
        **os.environ,
        **options.env,
        "PML_HOME": str(folder.home),
        "PML_NATS_URL": nats.url,
        "PML_POSTGRES_DSN": postgres.dsn(),
    }
    everyone.pop(KEY_FILE_VARIABLE, None)
    gateway = {
        **everyone,
        **_gateway_environment(options, folder, everyone),
        APPROVER_VARIABLE: everyone.get(APPROVER_VARIABLE) or user_name(),
        APPROVER_HASH_VARIABLE: write_key(approver_key, folder.home),
    }
    services = [
        Service(
            spec, _port_of(spec, options), folder, gateway if spec.name == GATEWAY else everyone
        )
        for spec in options.services
    ]
    return Composition(nats, postgres, services, approver_key)


def _port_of(spec: ServiceSpec, options: StackOptions) -> int:
    if spec.name != GATEWAY:
        return free_port()
    if options.gateway_port is not None:
        return require_port(options.gateway_port)
    return port_or_free(GATEWAY_PORT)


def _gateway_environment(
    options: StackOptions, folder: DataFolder, environment: Mapping[str, str]
) -> dict[str, str]:
    """What the gateway alone is told: its secret, its MCP servers, its policy file."""
    secret = environment.get(SECRET_VARIABLE) or folder.secret("gateway")
    servers = _mcp_servers(options, folder, environment)
    return {
        SECRET_VARIABLE: secret,
        POLICY_VARIABLE: environment.get(POLICY_VARIABLE) or str(folder.policy),
        **({MCP_SERVERS_VARIABLE: str(servers)} if servers is not None else {}),
    }


def _mcp_servers(
    options: StackOptions, folder: DataFolder, environment: Mapping[str, str]
) -> Path | None:
    named = options.mcp_servers or environment.get(MCP_SERVERS_VARIABLE)
    if not named:
        return folder.mcp_servers if folder.mcp_servers.exists() else None
    file = Path(named).expanduser().absolute()
    if not file.is_file():
        raise StackError(f"the mcpServers file {file} does not exist: check the path")
    return file
