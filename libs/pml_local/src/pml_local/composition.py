"""Composition of a stack: its parts, their ports and environments."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import get_args

from pml_common.bus.streams import Storage, StreamSettings
from pml_common.contracts.catalog import QUERIES, SERVICES
from pml_local.account import database_account
from pml_local.approver import default_key_file, user_name, write_key
from pml_local.environment import (
    COMMON,
    SYSTEM_CERTIFICATES,
    own_variables,
    referenced_variables,
    select_variables,
)
from pml_local.errors import StackError
from pml_local.folder import DataFolder, default_home
from pml_local.keys import SIGNED_MARK, key_variables, make_keys
from pml_local.nats import SYNC_VARIABLE, NatsServer
from pml_local.ports import LOOPBACK, free_port, port_or_free, require_port
from pml_local.postgres import PostgresServer
from pml_local.postgres_cluster import ROLES, Passwords
from pml_local.services import GATEWAY, GATEWAY_PORT, Service, ServiceSpec, pml_services
from pml_local.storage_watchdog import STORAGE_PROBE_INTERVAL

MCP_SERVERS_VARIABLE = "PML_MCP_SERVERS"
LOGINS_VARIABLE = "PML_GATEWAY_LOGINS"
POLICY_VARIABLE = "PML_GATEWAY_POLICY_FILE"
RUNS_VARIABLE = "PML_EXECUTOR_MAX_PROCESSES"
IN_FLIGHT_VARIABLE = "PML_GATEWAY_MAX_IN_FLIGHT"
DATA_VARIABLE = "PML_GATEWAY_DATA_FOLDERS"
SOCKETS_VARIABLE = "PML_GATEWAY_SOCKETS"
APPROVER_VARIABLE = "PML_GATEWAY_APPROVER"
APPROVER_HASH_VARIABLE = "PML_GATEWAY_APPROVER_KEY_SHA256"
SIGNED_MARK_VARIABLE = "PML_REGISTRY_SIGNED_MARK"
STORAGE_VARIABLE = "PML_STREAM_STORAGE"
SYNC_INTERVAL = "always"
"""Of the stack's NATS: what it accepts survives a power cut."""
SMALL: Mapping[str, Mapping[str, str]] = {
    "analyzer": {"PML_ANALYZER_SPARES": "0"},
    "executor": {"PML_EXECUTOR_POOL_SIZE": "1"},
}
"""Settings for a laptop, unless the user's environment has them: Deno processes on demand, and one
sandbox that waits."""

_ON_SOCKETS = {
    GATEWAY,
    *(client for query in QUERIES if query.owner == GATEWAY for client in query.clients),
}


@dataclass(frozen=True, slots=True)
class StackOptions:
    """Options of a stack."""

    home: Path = field(default_factory=default_home)
    gateway_port: int | None = None
    """None: 8080, or a free port when 8080 is taken."""
    mcp_servers: Path | None = None
    """An `mcpServers` file; None: PML_MCP_SERVERS, else `<home>/mcp.json`."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Overrides of the user's environment; each service gets only the variables it declares."""
    services: Sequence[ServiceSpec] = field(default_factory=pml_services)
    """One of them must be called `gateway`; its port makes the stack's URL."""
    storage_probe_interval: float = STORAGE_PROBE_INTERVAL
    """Seconds between two probes of whether NATS stores what is published."""
    servers_within: float = 20.0
    """Seconds to wait for MCP servers to list their tools or fail before the stack counts as
    ready."""
    approver_key: Path | None = None
    """Path of the approver's key file; None: see `approver.default_key_file`."""


@dataclass(frozen=True, slots=True)
class Composition:
    """The parts, not yet started."""

    nats: NatsServer
    postgres: PostgresServer
    services: Sequence[Service]
    keys: Path
    sockets: str
    """Folder of the gateway's socket; empty: queries go over NATS alone."""
    approver_key: Path

    @property
    def url(self) -> str:
        """The gateway's URL."""
        gateway = next(service for service in self.services if service.name == GATEWAY)
        return f"http://{LOOPBACK}:{gateway.port}"

    def credentials(self, service: str) -> dict[str, str]:
        """A service's access to the bus: its NATS user, its keys, and the folder of the gateway's
        socket if it serves or requests the gateway's queries; and its login at Postgres, if it has
        one."""
        return {
            "PML_NATS_URL": self.nats.url_of(service),
            **key_variables(self.keys, service),
            **({SOCKETS_VARIABLE: self.sockets} if service in _ON_SOCKETS and self.sockets else {}),
            **({"PML_POSTGRES_DSN": self.postgres.dsn_of(service)} if service in ROLES else {}),
        }


def compose(options: StackOptions, folder: DataFolder) -> Composition:
    """Choose ports and build the parts; raises StackError. Blocks: call it in a thread."""
    account = database_account()
    approver_key = options.approver_key or default_key_file(folder.home)
    passwords = {service: folder.secret(f"nats-{service}") for service in SERVICES}
    users = {**SYSTEM_CERTIFICATES, **os.environ, **options.env, "PML_HOME": str(folder.home)}
    nats = NatsServer(
        folder.nats,
        folder.log("nats"),
        folder.secret("nats"),
        passwords=passwords,
        sync_interval=users.get(SYNC_VARIABLE) or SYNC_INTERVAL,
        streams=StreamSettings(storage=_storage(users)),
    )
    make_keys(folder.keys, SERVICES)
    postgres = PostgresServer(
        folder.postgres(account),
        folder.log("postgres"),
        postgres_passwords(folder),
        account=account,
        schemas={spec.name: f"pml_{spec.name}" for spec in options.services if spec.has_schema},
    )
    approver = {
        APPROVER_VARIABLE: users.get(APPROVER_VARIABLE) or user_name(),
        APPROVER_HASH_VARIABLE: write_key(approver_key, folder.home),
    }
    signed_mark = {
        SIGNED_MARK_VARIABLE: users.get(SIGNED_MARK_VARIABLE) or str(folder.keys / SIGNED_MARK)
    }
    data = os.pathsep.join(str(each) for each in (folder.nats, postgres.data.parent))
    services: list[Service] = []
    sockets = users.get(SOCKETS_VARIABLE, str(folder.sockets))
    made = Composition(nats, postgres, services, folder.keys, sockets, approver_key)
    for spec in options.services:
        gateway = {
            **_gateway_environment(options, folder, users),
            **approver,
            DATA_VARIABLE: users.get(DATA_VARIABLE) or data,
        }
        chosen = {
            **SMALL.get(spec.name, {}),
            **select_variables(users, (*COMMON, *own_variables(spec.name), *spec.variables)),
            **(gateway if spec.name == GATEWAY else {}),
            **(signed_mark if spec.name == "registry" else {}),
        }
        named = spec.name == GATEWAY and options.gateway_port is not None
        env = partial(_service_environment, made, spec, chosen)
        services.append(Service(spec, _port_of(spec, options), folder, env, named=named))
    return made


def postgres_passwords(folder: DataFolder) -> Passwords:
    """Return the passwords of Postgres, generated at first use."""
    services = {schema: folder.secret(f"postgres-{schema}") for schema in ROLES}
    return Passwords(folder.secret("postgres"), services)


def _storage(users: Mapping[str, str]) -> Storage:
    """Return the storage of streams that the services will expect. Raises StackError."""
    named = users.get(STORAGE_VARIABLE) or "file"
    for storage in get_args(Storage):
        if named == storage:
            return storage
    raise StackError(f"{STORAGE_VARIABLE}={named}: expected {' or '.join(get_args(Storage))}")


def _service_environment(
    made: Composition, spec: ServiceSpec, chosen: Mapping[str, str]
) -> Mapping[str, str]:
    """Build a service's environment; call it once the servers have their final ports."""
    return {
        **chosen,
        **(made.credentials(spec.name) if spec.name in SERVICES else {}),
    }


def _port_of(spec: ServiceSpec, options: StackOptions) -> int:
    if spec.name != GATEWAY:
        return free_port()
    if options.gateway_port is not None:
        return require_port(options.gateway_port)
    return port_or_free(GATEWAY_PORT)


def _gateway_environment(
    options: StackOptions, folder: DataFolder, environment: Mapping[str, str]
) -> dict[str, str]:
    """Variables for the gateway alone: policy file, MCP servers and the variables their file refers
    to, and the number of runs that the one executor takes."""
    servers = _mcp_servers(options, folder, environment)
    text = servers.read_text(encoding="utf-8", errors="replace") if servers.is_file() else ""
    runs = environment.get(IN_FLIGHT_VARIABLE) or environment.get(RUNS_VARIABLE)
    return {
        **select_variables(environment, referenced_variables(text)),
        **({IN_FLIGHT_VARIABLE: runs} if runs else {}),
        POLICY_VARIABLE: environment.get(POLICY_VARIABLE) or str(folder.policy),
        MCP_SERVERS_VARIABLE: str(servers),
        LOGINS_VARIABLE: environment.get(LOGINS_VARIABLE) or str(folder.logins),
    }


def _mcp_servers(options: StackOptions, folder: DataFolder, environment: Mapping[str, str]) -> Path:
    named = options.mcp_servers or environment.get(MCP_SERVERS_VARIABLE)
    if not named:
        return folder.mcp_servers  # which need not exist yet
    file = Path(named).expanduser().absolute()
    if not file.is_file():
        raise StackError(f"the mcpServers file {file} does not exist: check the path")
    return file
