"""The life cycle of a service process: settings, telemetry, bus, health, graceful stop."""

import asyncio
import gc
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

import uvloop
from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from pml_common.background import background, run_periodically
from pml_common.bus.errors import BusError, NotProvisioned
from pml_common.bus.identity import Identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import Bus
from pml_common.bus.provision import Plan, provision_until
from pml_common.bus.server_clock import clock_difference
from pml_common.bus.streams import MAX_REPLICAS, Storage, StreamSettings

# Imported for its effect.
from pml_common.contracts import built  # noqa: F401  # pyright: ignore[reportUnusedImport]
from pml_common.contracts.catalog import Service
from pml_common.health import Check, Checks, Detail, Readiness, detail, serve_health
from pml_common.secret_files import secrets_source
from pml_common.signing import KeyUnreadable, SigningKey, TrustedKeys
from pml_common.storage.errors import MigrationChanged, RolesMissing, StorageUnavailable
from pml_common.storage.schema import migrate_schema
from pml_common.telemetry.logs import LogFormat, set_up_logging
from pml_common.telemetry.setup import Scrape, metering, set_up_tracing
from pml_common.throttled_check import ThrottledCheck

log = logging.getLogger(__name__)


class ServiceSettings(BaseSettings):
    """Settings of every service, from the environment (`PML_…`), or else from files of these names
    in the folder `PML_SECRETS_DIR`; times in seconds."""

    model_config = SettingsConfigDict(env_prefix="PML_", extra="ignore", frozen=True)

    nats_url: str = Field(
        default="nats://127.0.0.1:4222", description="several servers of a cluster with commas"
    )
    stream_replicas: int = Field(default=1, ge=1, le=MAX_REPLICAS)
    stream_storage: Storage = "file"
    signing_key: Path | None = Field(default=None, description="our private key, PEM")
    trusted_keys: Path | None = Field(default=None, description="all services' public keys, JSON")
    gateway_sockets: Path | None = Field(
        default=None,
        description="Folder of the gateways' sockets on this machine; without it, NATS alone.",
    )
    health_port: int = Field(default=0, ge=0, le=65535, description="0: no health server")
    health_host: str = Field(
        default="127.0.0.1", description="Address of the health server; 0.0.0.0 for a kubelet."
    )
    metrics: Literal["on", "off"] = Field(
        default="on", description="Whether the health server has GET /metrics, for Prometheus."
    )
    log_level: str = "INFO"
    log_format: LogFormat = "text"
    start_patience_s: float = 30.0
    shutdown_delay_s: float = Field(
        default=0.0,
        ge=0,
        description="From SIGTERM to the drain; meanwhile /readyz says 503, requests are served.",
    )
    shutdown_timeout_s: float = Field(
        default=10.0, ge=0, description="The drain: for requests in progress to finish."
    )
    otlp_endpoint: str | None = Field(default=None, validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    metrics_exporter: str = Field(default="otlp", validation_alias="OTEL_METRICS_EXPORTER")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment before files."""
        return init_settings, env_settings, *secrets_source(settings_cls)

    @property
    def streams(self) -> StreamSettings:
        """Settings of the streams; only `pml bus provision` changes existing ones."""
        return StreamSettings(self.stream_replicas, self.stream_storage)

    @field_validator("gateway_sockets", "otlp_endpoint", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return value or None

    @property
    def sockets(self) -> dict[str, Path]:
        """Folders of the services that queries reach over sockets."""
        return {} if self.gateway_sockets is None else {"gateway": self.gateway_sockets}

    @property
    def is_scraped(self) -> bool:
        """Whether metrics are collected for the health server."""
        return self.metrics == "on" and self.health_port != 0

    @property
    def metrics_endpoint(self) -> str | None:
        """The endpoint for metrics, if any: not every collector of spans accepts them."""
        return None if self.metrics_exporter == "none" else self.otlp_endpoint


class StorageSettings(ServiceSettings):
    """Settings of a service with Postgres."""

    postgres_dsn: str = "postgresql://127.0.0.1:5432/pml"


S = TypeVar("S", bound=ServiceSettings)


async def _no_drain(_: float) -> None:
    pass


@dataclass(frozen=True)
class RunningService:
    """A service with an HTTP interface: its health checks, its readiness, and its drain, which
    finishes requests in progress within the given seconds, before the bus is drained."""

    checks: Checks
    readiness: Readiness = field(default_factory=Readiness)
    drain: Callable[[float], Awaitable[None]] = _no_drain


Serve = Callable[[S, Bus], AbstractAsyncContextManager[Checks | RunningService]]
"""Wires a service to the bus until the context exits; yields the service's health checks."""

_STALLS_EVERY_S = 30.0
_LEAST_DRAIN_S = 2.0
"""Minimum for the bus, however long requests took to finish."""


class CannotStart(Exception):
    """A fault that the operator has to fix first; logged without a traceback."""


def signing_key_of(name: Service, settings: ServiceSettings) -> SigningKey:
    """Load the service's signing key. Raises CannotStart."""
    try:
        return SigningKey.load(name, _required(settings.signing_key))
    except KeyUnreadable as error:
        raise CannotStart(str(error)) from error


def trusted_keys_of(settings: ServiceSettings) -> TrustedKeys:
    """Load the public keys that the service trusts. Raises CannotStart."""
    try:
        return TrustedKeys.load(_required(settings.trusted_keys))
    except KeyUnreadable as error:
        raise CannotStart(str(error)) from error


def _required(file: Path | None) -> Path:
    if file is None:
        raise CannotStart(
            "PML_SIGNING_KEY must name the file of this service's private key and PML_TRUSTED_KEYS "
            "that of all services' public keys (deploy/README.md says how to make them)"
        )
    return file


def identity_of(name: Service, settings: ServiceSettings) -> Identity:
    """Load the service's signing key and trusted keys. Raises CannotStart."""
    key, trusted = signing_key_of(name, settings), trusted_keys_of(settings)
    if key.public not in trusted.keys:
        raise CannotStart(
            f"{settings.trusted_keys} does not list the key {key.kid} of the {name}: no service "
            "would accept what it publishes"
        )
    return Identity([key], trusted)


def clock_check(now: Callable[[], datetime], wall: Callable[[], float] = time.time) -> Check:
    """Return a health check that reports, as a detail, how far the local clock is from the bus's
    (`now`); it never fails."""

    async def check() -> str | None:
        found = clock_difference(now, wall)
        return None if found is None else Detail(found)

    return check


def run_service(name: Service, settings: S, serve: Serve[S]) -> None:
    """Run until SIGTERM or SIGINT, then drain. Exits non-zero when it cannot start."""
    set_up_logging(name, settings.log_level, settings.log_format)
    tracing = set_up_tracing(name, settings.otlp_endpoint)
    try:
        with metering(name, settings.metrics_endpoint, scraped=settings.is_scraped) as scrape:
            uvloop.run(_run(name, settings, serve, scrape))
    except CannotStart as error:
        log.critical("cannot start: %s", error)
        raise SystemExit(1) from None
    finally:
        if tracing is not None:
            tracing.shutdown()


def run_migrations(name: Service, settings: StorageSettings) -> None:
    """Apply the migrations that the service's schema lacks, with its roles, as the schema's owner,
    whose login `postgres_dsn` names; needs no bus. Exits non-zero where it cannot."""
    set_up_logging(name, settings.log_level, settings.log_format)
    dsn, patience_s = settings.postgres_dsn, settings.start_patience_s
    try:
        uvloop.run(migrate_schema(dsn, name, f"pml_{name}", patience_s=patience_s))
    except (StorageUnavailable, MigrationChanged, RolesMissing) as error:
        log.critical("cannot migrate: %s", error)
        raise SystemExit(1) from None
    log.info("schema %s is up to date", name)


def run_provisioning(settings: ServiceSettings) -> None:
    """Create and update streams, buckets and consumers, as the operator, whose user `nats_url`
    names. Removes replicas only where their number is set. Exits non-zero where it cannot."""
    set_up_logging("provision", settings.log_level, settings.log_format)
    plan = Plan(settings.streams, may_lower="stream_replicas" in settings.model_fields_set)
    try:
        done = uvloop.run(provision_until(settings.nats_url, plan, settings.start_patience_s))
    except BusError as error:
        log.critical("cannot provision: %s", error)
        raise SystemExit(1) from None
    for each in done:
        if each.state in ("created", "changed"):
            log.info("%s %s", each.state, each.name)
        if each.problem is not None:
            log.critical("%s: %s", each.name, each.problem)
    if any(each.problem is not None for each in done):
        raise SystemExit(1)
    log.info("%d streams and consumers are as configured", len(done))


class Stalls:
    """Findings of the last look at a service's consumers."""

    def __init__(self, bus: NatsBus) -> None:
        self._bus = bus
        self._found: str | None = None

    async def look(self) -> None:
        """Look at them, and skip what the server has lost. Raises BusUnavailable."""
        self._found = await self._bus.stalled()

    async def check(self) -> str | None:
        """Return what was found; that others' scopes wait is a detail."""
        return self._found or detail(self._bus.unserved())


def _checks_of(bus: NatsBus, stalls: Stalls) -> Checks:
    """Return the checks of every service."""
    stores = ThrottledCheck(bus.refusal)

    async def nats() -> str | None:
        if not await bus.healthy():
            return "NATS does not answer"
        return await stores() or detail(await bus.shortfall())

    return {"nats": nats, "consumers": stalls.check, "clock": clock_check(bus.now)}


async def _run(name: Service, settings: S, serve: Serve[S], scrape: Scrape | None) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        bus = await NatsBus.connect(
            settings.nats_url,
            service=name,
            identity=identity_of(name, settings),
            stream_settings=settings.streams,
            sockets=settings.sockets,
            patience_s=settings.start_patience_s,
        )
    except NotProvisioned as error:
        raise CannotStart(str(error)) from error

    clock = asyncio.get_running_loop().time
    drained_by = 0.0

    async def drain_bus() -> None:
        await bus.drain(max(_LEAST_DRAIN_S, drained_by - clock()))

    async with AsyncExitStack() as stack:
        try:
            served = await stack.enter_async_context(serve(settings, bus))
        except RolesMissing as error:
            raise CannotStart(str(error)) from error
        if not isinstance(served, RunningService):
            served = RunningService(served)
        # Entered last, left first: resources close only after the handlers are done.
        stack.push_async_callback(drain_bus)
        stalls = Stalls(bus)
        looks = run_periodically(stalls.look, _STALLS_EVERY_S, first_after_s=_STALLS_EVERY_S)
        await stack.enter_async_context(background([looks]))
        if settings.health_port:
            every = {**_checks_of(bus, stalls), **served.checks}
            address = settings.health_host, settings.health_port
            health = serve_health(
                address[1], every, served.readiness, host=address[0], scrape=scrape
            )
            await stack.enter_async_context(health)
        gc.collect()
        gc.freeze()  # modules and schemas stay: no later collection walks them
        log.info("ready (pid %d)", os.getpid())
        await stop.wait()
        log.info("stopping")
        served.readiness.stopping = True
        await asyncio.sleep(settings.shutdown_delay_s)
        drained_by = clock() + settings.shutdown_timeout_s
        await served.drain(settings.shutdown_timeout_s)
