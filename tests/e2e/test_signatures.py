"""Signed versions on the whole stack: tampered ones do not run, and the key can be replaced."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.signing import SigningKey
from pml_local.composition import StackOptions
from pml_local.ports import free_port
from pml_local.stack import embedded_stack
from tests.e2e.collector import Collector, collector

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

CODE = "return { kept: true };"
TAMPERED = "UPDATE registry.workflow_pattern SET code = $1 WHERE code = $2"


async def _answer(http: httpx2.AsyncClient, **request: object) -> tuple[int, dict[str, Any]]:
    answer = await http.post("/api/execute", json=request)
    return answer.status_code, answer.json()


async def _key_of(http: httpx2.AsyncClient) -> str:
    return (await http.get("/api/capabilities/safe:keep")).json()["key_id"]


@pytest.fixture
async def telemetry() -> AsyncGenerator[Collector]:
    """Receives the services' metrics."""
    async with collector() as receiving:
        yield receiving


async def test_a_tampered_version_does_not_run_and_the_key_of_signatures_can_be_replaced(
    tmp_path: Path, telemetry: Collector
) -> None:
    options = StackOptions(
        home=tmp_path / "data",
        gateway_port=free_port(),
        env={
            "OTEL_EXPORTER_OTLP_ENDPOINT": telemetry.endpoint,
            "OTEL_METRIC_EXPORT_INTERVAL": "1000",
        },
    )
    key, mark = (tmp_path / "data" / "keys" / name for name in ("registry.pem", "versions-signed"))
    async with (
        embedded_stack(options) as stack,
        httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http,
    ):
        _, made = await _answer(http, code=CODE, name="safe:keep")
        assert made["status"] == "success", made
        first = SigningKey.load("registry", key).kid
        assert await _key_of(http) == first
        assert mark.exists()

    key.unlink()
    async with (
        embedded_stack(options) as stack,
        httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http,
    ):
        second = SigningKey.load("registry", key).kid
        assert second != first

        async def signed_anew() -> bool:
            return await _key_of(http) == second

        await eventually(signed_anew)
        _, kept = await _answer(http, capability="safe:keep")
        assert kept["result"] == {"kept": True}, kept

        database = await asyncpg.connect(stack.postgres_dsn)
        try:
            await database.execute("SET ROLE pml_registry_batch")
            assert await database.execute(TAMPERED, "return { kept: 0 };", CODE) == "UPDATE 1"
        finally:
            await database.close()
        status, refused = await _answer(http, capability="safe:keep")
        assert (status, refused["error"]["kind"]) == (409, "conflict"), refused
        assert "is not what the key" in refused["error"]["message"]
        _, nested = await _answer(http, code="return await capabilities.safe_keep({});")
        assert nested["status"] == "error", nested
        assert "Capability safe_keep cannot be called" in str(nested)

        async def counted() -> bool:
            return telemetry.counts.get(("pml.versions.refused", "not_as_signed"), 0) >= 2

        await eventually(counted)
