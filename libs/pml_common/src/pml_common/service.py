"""How every service process lives: settings, telemetry, bus, health, graceful stop."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TypeVar

import uvloop
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from pml_common.bus.identity import Identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import Bus
from pml_common.contracts.catalog import Service
from pml_common.health import Checks, serve_health
from pml_common.signing import KeyUnreadable, SigningKey, TrustedKeys
from pml_common.telemetry.setup import set_up_logging, set_up_metrics, set_up_tracing

log = logging.getLogger(__name__)


class ServiceSettings(BaseSettings):
    """What every service is told by its environment (`PML_…`); times in seconds."""

    model_config = SettingsConfigDict(env_prefix="PML_", extra="ignore", frozen=True)

    nats_url: str = "nats://127.0.0.1:4222"
    signing_key: Path | None = Field(default=None, description="our private key, PEM")
    trusted_keys: Path | None = Field(default=None, description="all services' public keys, JSON")
    health_port: int = Field(default=0, ge=0, le=65535, description="0: no health server")
    log_level: str = "INFO"
    start_patience_s: float = 30.0
    shutdown_timeout_s: float = 10.0
    otlp_endpoint: str | None = Field(default=None, validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    metrics_exporter: str = Field(default="otlp", validation_alias="OTEL_METRICS_EXPORTER")

    @property
    def metrics_endpoint(self) -> str | None:
        """Where metrics go, if anywhere: not every collector of spans takes them."""
        return None if self.metrics_exporter == "none" else self.otlp_endpoint


class StorageSettings(ServiceSettings):
    """The same, with Postgres."""

    postgres_dsn: str = "postgresql://127.0.0.1:5432/pml"


S = TypeVar("S", bound=ServiceSettings)
Serve = Callable[[S, Bus], AbstractAsyncContextManager[Checks]]
"""Wires a service to the bus for as long as the block runs; yields its own health checks."""


class CannotStart(Exception):
    """What the operator has to mend first; its message is all that is told."""


def signing_key_of(name: Service, settings: ServiceSettings) -> SigningKey:
    """What the service signs with. Raises CannotStart."""
    try:
        return SigningKey.load(name, _named(settings.signing_key))
    except KeyUnreadable as error:
        raise CannotStart(str(error)) from error


def trusted_keys_of(settings: ServiceSettings) -> TrustedKeys:
    """Whom the service believes. Raises CannotStart."""
    try:
        return TrustedKeys.load(_named(settings.trusted_keys))
    except KeyUnreadable as error:
        raise CannotStart(str(error)) from error


def _named(file: Path | None) -> Path:
    if file is None:
        raise CannotStart(
            "PML_SIGNING_KEY must name the file of this service's private key and PML_TRUSTED_KEYS "
            "that of all services' public keys (deploy/README.md says how to make them)"
        )
    return file


def identity_of(name: Service, settings: ServiceSettings) -> Identity:
    """What the service signs with and whom it believes. Raises CannotStart."""
    key, trusted = signing_key_of(name, settings), trusted_keys_of(settings)
    if key.public not in trusted.keys:
        raise CannotStart(
            f"{settings.trusted_keys} does not list the key {key.kid} of the {name}: nobody would "
            "believe what it publishes"
        )
    return Identity([key], trusted)


def run_service(name: Service, settings: S, serve: Serve[S]) -> None:
    """Run until SIGTERM or SIGINT, then drain. Exits non-zero when it cannot start."""
    set_up_logging(name, settings.log_level)
    tracing = set_up_tracing(name, settings.otlp_endpoint)
    metering = set_up_metrics(name, settings.metrics_endpoint)
    try:
        uvloop.run(_live(name, settings, serve))
    except CannotStart as error:
        log.critical("cannot start: %s", error)
        raise SystemExit(1) from None
    finally:
        for provider in (tracing, metering):
            if provider is not None:
                provider.shutdown()


async def _live(name: Service, settings: S, serve: Serve[S]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    bus = await NatsBus.connect(
        settings.nats_url,
        service=name,
        identity=identity_of(name, settings),
        patience_s=settings.start_patience_s,
    )

    async def nats() -> str | None:
        return None if await bus.healthy() else "NATS does not answer"

    async with AsyncExitStack() as stack:
        checks = await stack.enter_async_context(serve(settings, bus))
        # Entered last, left first: nothing a handler uses closes before the handlers are done.
        stack.push_async_callback(bus.drain, settings.shutdown_timeout_s)
        if settings.health_port:
            every = {"nats": nats, **checks}
            await stack.enter_async_context(serve_health(settings.health_port, every))
        log.info("ready (pid %d)", os.getpid())
        await stop.wait()
        log.info("stopping")
