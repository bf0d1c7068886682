"""What the gateway is told by its environment; the only reader of it."""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, StringConstraints, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from pml_common.contracts.decision import Policy
from pml_common.contracts.scope import Scope, ScopeToken
from pml_common.service import StorageSettings, signing_key_of
from pml_common.signing import SigningKey
from pml_gateway.domain.api.approver import PREFIX, Approver
from pml_gateway.domain.api.origin import LOOPBACK, Names, is_loopback, names_of
from pml_gateway.domain.workflow.acceptance import Terms
from pml_gateway.domain.workflow.turns import Bounds
from pml_gateway.domain.workflow.workflow_state import Rules

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class GatewaySettings(StorageSettings):
    """`PML_…` and `PML_GATEWAY_…`; times in seconds.

    Grants are signed with the key of `signing_key`, as messages are.
    """

    model_config = SettingsConfigDict(hide_input_in_errors=True, validate_default=True)

    gateway_host: str = "127.0.0.1"
    gateway_port: int = Field(default=8080, ge=0, le=65535)
    gateway_listen_fd: int | None = Field(
        default=None, description="An open socket to take connections from, instead of the port."
    )
    gateway_allow_remote: bool = Field(
        default=False, description="Listen on an address that others can reach, without a login."
    )
    gateway_allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Names we are called by besides loopback's: host or host:port; * for any.",
    )
    mcp_servers: Path | None = None

    gateway_org: ScopeToken = "local"
    gateway_project: ScopeToken = "default"
    gateway_principal: str = "local"
    gateway_approver: str = Field(default="local", description="The name of who decides.")
    gateway_approver_key_sha256: (
        Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None
    ) = Field(default=None, description="Hash of the key to decide with; without one nobody can.")
    gateway_policy: Policy = Policy()
    gateway_policy_file: Path | None = Field(
        default=None, description="Policies of all scopes; read again whenever it changes."
    )

    gateway_max_body_bytes: int = Field(default=1024 * 1024, gt=0)
    gateway_head_timeout_s: float = Field(
        default=10.0, gt=0, description="For a request's line and headers to come."
    )
    gateway_body_timeout_s: float = Field(
        default=30.0, gt=0, description="For a request's body to come, from its head on."
    )
    gateway_max_in_flight: int = Field(
        default=10, ge=1, description="Executions analysed, queued and run at a time."
    )
    gateway_max_waiting: int = Field(
        default=256, ge=0, description="Executions that wait to be in flight, in all scopes."
    )
    gateway_max_waiting_per_scope: int = Field(default=64, ge=0)
    gateway_default_timeout_s: float = Field(default=60.0, gt=0)
    gateway_max_timeout_s: float = Field(default=3600.0, gt=0)
    gateway_answer_margin_s: float = Field(default=5.0, ge=0)
    gateway_approval_ttl_s: float = Field(default=3600.0, gt=0)
    gateway_grant_slack_s: float = Field(default=3600.0, gt=0)
    gateway_patience_s: float = Field(
        default=60.0, gt=0, description="What stands still for longer is asked for again."
    )
    gateway_storage_patience_s: float = Field(default=1.5, gt=0)
    gateway_owner_patience_s: float = Field(
        default=10.0, ge=0, description="For a service that answers queries to be there again."
    )
    gateway_sweep_every_s: float = Field(default=1.0, gt=0)
    gateway_data_folders: Annotated[tuple[Path, ...], NoDecode] = Field(
        default=(),
        description="Folders of NATS and Postgres whose disks we watch; as PATH separates them.",
    )
    gateway_min_free_mib: int = Field(
        default=256, ge=0, description="New work is refused where a disk has less left."
    )
    gateway_stub_tools: bool = Field(
        default=False, description="Offer pml_stub:echo, answered inside the gateway."
    )

    @model_validator(mode="before")
    @classmethod
    def _split_hosts(cls, values: dict[str, object]) -> dict[str, object]:
        hosts = values.get("gateway_allowed_hosts")
        if isinstance(hosts, str):
            named = tuple(host.strip() for host in hosts.split(",") if host.strip())
            return values | {"gateway_allowed_hosts": named}
        return values

    @field_validator("gateway_data_folders", mode="before")
    @classmethod
    def _split_folders(cls, folders: object) -> object:
        if not isinstance(folders, str):
            return folders
        return tuple(Path(each) for each in folders.split(os.pathsep) if each)

    @field_validator("gateway_principal")
    @classmethod
    def _no_approver(cls, principal: str) -> str:
        if principal.startswith(PREFIX):
            raise ValueError(f"PML_GATEWAY_PRINCIPAL names who asks: none begins with {PREFIX}")
        return principal

    @field_validator("gateway_allowed_hosts")
    @classmethod
    def _hosts_alone(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        names_of((), hosts)
        return hosts

    @model_validator(mode="after")
    def _stay_local(self) -> Self:
        if not is_loopback(self.gateway_host) and not self.gateway_allow_remote:
            raise ValueError(
                f"PML_GATEWAY_HOST={self.gateway_host} can be reached by others, and whoever "
                "reaches this gateway is let in; keep it on 127.0.0.1, or set "
                "PML_GATEWAY_ALLOW_REMOTE=true if something in front of it checks who asks"
            )
        return self

    @property
    def scope(self) -> Scope:
        """The one scope of an embedded gateway."""
        return Scope(org=self.gateway_org, project=self.gateway_project)

    @property
    def approver(self) -> Approver:
        """The person who decides."""
        return Approver(self.gateway_approver, self.gateway_approver_key_sha256)

    @property
    def names(self) -> Names:
        """By which names requests may call us."""
        return names_of(LOOPBACK | {self.gateway_host}, self.gateway_allowed_hosts)

    @property
    def terms(self) -> Terms:
        """What holds for executions."""
        return Terms(
            default_timeout_s=self.gateway_default_timeout_s,
            max_timeout_s=self.gateway_max_timeout_s,
            answer_margin_s=self.gateway_answer_margin_s,
        )

    @property
    def bounds(self) -> Bounds:
        """How many executions go on, and wait for that."""
        return Bounds(
            in_flight=self.gateway_max_in_flight,
            waiting=self.gateway_max_waiting,
            waiting_per_scope=self.gateway_max_waiting_per_scope,
        )

    @property
    def grant_key(self) -> SigningKey:
        """What grants are signed with. Raises CannotStart."""
        return signing_key_of("gateway", self)

    def rules(self, key: SigningKey) -> Rules:
        """What holds for grants, signed with this key, and approvals."""
        return Rules(
            key=key,
            approval_ttl=timedelta(seconds=self.gateway_approval_ttl_s),
            grant_slack=timedelta(seconds=self.gateway_grant_slack_s),
            patience=timedelta(seconds=self.gateway_patience_s),
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """All variables, for the MCP servers' file to refer to and their processes to choose
        from."""
        return dict(os.environ)
