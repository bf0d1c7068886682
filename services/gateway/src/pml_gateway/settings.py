"""Settings of the gateway; the only reader of its environment."""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, StringConstraints, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from pml_common.contracts.decision import Policy
from pml_common.contracts.scope import Scope, ScopeToken
from pml_common.secret_files import secret_variables
from pml_common.service import StorageSettings, signing_key_of
from pml_common.signing import SigningKey
from pml_gateway.domain.api.approver import PREFIX, Approver
from pml_gateway.domain.api.listed_tools import ListMode
from pml_gateway.domain.api.origin import (
    LOOPBACK,
    AllowedHosts,
    allowed_hosts,
    is_loopback,
    origin,
)
from pml_gateway.domain.api.speculation_threshold import ThresholdRule
from pml_gateway.domain.workflow.acceptance import Terms
from pml_gateway.domain.workflow.turns import Bounds
from pml_gateway.domain.workflow.workflow_state import Rules

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class GatewaySettings(StorageSettings):
    """Variables `PML_…` and `PML_GATEWAY_…`; times in seconds.

    Grants are signed with the key of `signing_key`, as messages are.
    """

    model_config = SettingsConfigDict(hide_input_in_errors=True, validate_default=True)

    gateway_host: str = "127.0.0.1"
    gateway_port: int = Field(default=8080, ge=0, le=65535)
    gateway_listen_fd: int | None = Field(
        default=None, description="Inherited listening socket, used instead of the port."
    )
    gateway_allow_remote: bool = Field(
        default=False,
        description="Listen on an address that other hosts can reach, without a login.",
    )
    gateway_allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Accepted Host names besides loopback's: host or host:port; * for any.",
    )
    gateway_cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Origins whose pages may call REST and MCP, as https://app.example; none is "
        "allowed by default, and * is refused: any page could run programs.",
    )
    mcp_servers: Path | None = None
    gateway_logins: Path | None = Field(
        default=None,
        description="Folder of the logins at MCP servers; without it, none can be made.",
    )

    gateway_org: ScopeToken = "local"
    gateway_project: ScopeToken = "default"
    gateway_principal: str = "local"
    gateway_approver: str = Field(default="local", description="Name of the approver.")
    gateway_approver_key_sha256: (
        Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None
    ) = Field(
        default=None, description="Hash of the approver's key; without it, nothing can be approved."
    )
    gateway_approver_is_admin: bool = Field(
        default=True,
        description="Whether the approver may change any capability record of the scope.",
    )
    gateway_policy: Policy = Policy()
    gateway_policy_file: Path | None = Field(
        default=None, description="Policies of all scopes; reloaded when the file changes."
    )

    gateway_max_body_bytes: int = Field(default=1024 * 1024, gt=0)
    gateway_head_timeout_s: float = Field(
        default=10.0, gt=0, description="Time to receive a request's line and headers."
    )
    gateway_body_timeout_s: float = Field(
        default=30.0, gt=0, description="Time to receive a request's body, after its headers."
    )
    gateway_max_in_flight: int = Field(
        default=10, ge=1, description="Executions in flight: being analysed, queued or running."
    )
    gateway_max_waiting: int = Field(
        default=256, ge=0, description="Executions that wait for a slot, in all scopes."
    )
    gateway_max_waiting_per_scope: int = Field(default=64, ge=0)
    gateway_listed_tools: ListMode = Field(
        default="all",
        description="Tools listed over MCP where the client does not say: all, meta (PML's own and "
        "named capabilities) or auto (all, while the servers' are few).",
    )
    gateway_session_ttl_s: float = Field(
        default=24 * 3600.0,
        ge=60,
        le=7 * 24 * 3600,
        description="Time after its last request, or open stream, for which a session of an MCP "
        "client is kept.",
    )
    gateway_max_sessions: int = Field(
        default=10_000, ge=1, description="Sessions of one credential, in all gateways."
    )
    gateway_max_session_streams: int = Field(
        default=256, ge=1, description="Open event streams of one credential's sessions, here."
    )
    gateway_speculation_threshold: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Score from which the best capability for an intent and a context is run.",
    )
    gateway_speculation_span: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="How far what became of such runs moves this score in a scope at most; 0: it "
        "is fixed.",
    )
    gateway_default_timeout_s: float = Field(default=60.0, gt=0)
    gateway_max_timeout_s: float = Field(default=3600.0, gt=0)
    gateway_answer_margin_s: float = Field(default=5.0, ge=0)
    gateway_approval_ttl_s: float = Field(default=3600.0, gt=0)
    gateway_grant_slack_s: float = Field(default=3600.0, gt=0)
    gateway_patience_s: float = Field(
        default=60.0,
        gt=0,
        description="Time without progress after which a workflow's last message is repeated.",
    )
    gateway_storage_patience_s: float = Field(default=1.5, gt=0)
    gateway_owner_patience_s: float = Field(
        default=10.0,
        ge=0,
        description="Time to wait for an absent service to answer queries again.",
    )
    gateway_analysis_max_age_s: float = Field(
        default=300.0,
        ge=0,
        description="Time for which the analysis of a program is used again; 0: never.",
    )
    gateway_workflow_days: float = Field(
        default=90.0,
        ge=7,  # as long as its journal is kept, which ends a run of the same key
        description="Days for which an ended workflow, its result and its key are kept; one with "
        "an approval is kept for ever.",
    )
    gateway_result_ttl_s: float = Field(
        default=3600.0,
        gt=0,
        description="Time after its end for which the results of a workflow's tasks are returned.",
    )
    gateway_sweep_every_s: float = Field(default=1.0, gt=0)
    gateway_data_folders: Annotated[tuple[Path, ...], NoDecode] = Field(
        default=(),
        description="Data folders of NATS and Postgres, whose disks are watched; as in PATH.",
    )
    gateway_min_free_mib: int = Field(
        default=256, ge=0, description="Free space below which new executions are refused."
    )
    gateway_stub_tools: bool = Field(
        default=False, description="Offer pml_stub:echo, a tool inside the gateway."
    )

    @model_validator(mode="before")
    @classmethod
    def _split_hosts(cls, values: dict[str, object]) -> dict[str, object]:
        split = dict(values)
        for field in ("gateway_allowed_hosts", "gateway_cors_origins"):
            names = values.get(field)
            if isinstance(names, str):
                split[field] = tuple(name.strip() for name in names.split(",") if name.strip())
        return split

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
            raise ValueError(f"PML_GATEWAY_PRINCIPAL is the agent: it may not begin with {PREFIX}")
        return principal

    @field_validator("gateway_allowed_hosts")
    @classmethod
    def _hosts_alone(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        allowed_hosts((), hosts)
        return hosts

    @field_validator("gateway_cors_origins")
    @classmethod
    def _origins_alone(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(origin, origins))

    @model_validator(mode="after")
    def _stay_local(self) -> Self:
        if not is_loopback(self.gateway_host) and not self.gateway_allow_remote:
            raise ValueError(
                f"PML_GATEWAY_HOST={self.gateway_host} can be reached from other hosts, and the "
                "gateway has no login; keep it on 127.0.0.1, or set PML_GATEWAY_ALLOW_REMOTE=true "
                "if something in front of it authenticates callers"
            )
        return self

    @property
    def scope(self) -> Scope:
        """Scope of all callers of an embedded gateway."""
        return Scope(org=self.gateway_org, project=self.gateway_project)

    @property
    def approver(self) -> Approver:
        """Identity and key of the approver."""
        return Approver(
            self.gateway_approver, self.gateway_approver_key_sha256, self.gateway_approver_is_admin
        )

    @property
    def names(self) -> AllowedHosts:
        """Host names that requests may use."""
        own = LOOPBACK | {self.gateway_host}
        return allowed_hosts(own, self.gateway_allowed_hosts, self.gateway_cors_origins)

    @property
    def terms(self) -> Terms:
        """Time limits of executions."""
        return Terms(
            default_timeout_s=self.gateway_default_timeout_s,
            max_timeout_s=self.gateway_max_timeout_s,
            answer_margin_s=self.gateway_answer_margin_s,
        )

    @property
    def threshold_rule(self) -> ThresholdRule:
        """The configured threshold of speculation, and its bounds."""
        return ThresholdRule(self.gateway_speculation_threshold, self.gateway_speculation_span)

    @property
    def bounds(self) -> Bounds:
        """Bounds on the executions in flight and waiting."""
        return Bounds(
            in_flight=self.gateway_max_in_flight,
            waiting=self.gateway_max_waiting,
            waiting_per_scope=self.gateway_max_waiting_per_scope,
        )

    @property
    def grant_key(self) -> SigningKey:
        """Key that signs grants. Raises CannotStart."""
        return signing_key_of("gateway", self)

    def rules(self, key: SigningKey) -> Rules:
        """Build the rules for approvals and for grants, signed with `key`."""
        return Rules(
            key=key,
            approval_ttl=timedelta(seconds=self.gateway_approval_ttl_s),
            grant_slack=timedelta(seconds=self.gateway_grant_slack_s),
            patience=timedelta(seconds=self.gateway_patience_s),
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """All environment variables, and secrets in files, for the MCP servers' file and their
        processes."""
        return {**secret_variables(), **os.environ}
