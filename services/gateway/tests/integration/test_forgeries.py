"""Calls of a run, forged with the executor's rights on the bus: on real NATS and
Postgres nothing is called that was not approved."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.gateway import CallTool, ToolOutcome
from services.gateway.tests.integration.gateways import Gateway, gateway, peers
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.fakes import FakeServices

pytestmark = pytest.mark.integration

SHOWN = {"path": "/notes.txt"}


def _policy(file: Path, verdict: str) -> None:
    rule = {"pattern": "pml_stub:*", "verdict": verdict}
    file.write_text(json.dumps({"rules": [rule]}), encoding="utf-8")


@asynccontextmanager
async def _running(
    nats_url: str, dsn: str, folder: Path
) -> AsyncGenerator[tuple[Gateway, FakeServices, CallTool]]:
    """Start an approved run that does not end; return it and the call that was shown. The fake
    analyzer said `allow`; the gateway asked by itself."""
    policy = folder / "policy.json"
    _policy(policy, "ask")
    async with peers(nats_url) as p, gateway(nats_url, dsn, gateway_policy_file=policy) as g:
        asked = await g.execute("hang")
        assert asked["status"] == "approval_required"
        assert (await g.decide(asked["workflow_id"], "approve")).status_code == 200
        (command,) = await eventually(lambda: p.runs)
        call = CallTool(
            scope=SCOPE,
            workflow_id=command.workflow_id,
            node_id="n1",
            occurrence=0,
            tool="pml_stub:echo",
            args=dict(SHOWN),
            grant_digest=command.grant.digest(),
            timeout_s=5.0,
        )
        yield g, p, call


async def _ask(bus: Bus, call: CallTool, **change: object) -> ToolOutcome:
    return await bus.request(catalog.CALL_TOOL, call.model_copy(update=change), timeout=PATIENCE_S)


async def test_only_the_call_that_was_shown_is_made(
    nats_url: str, postgres_dsn: str, tmp_path: Path
) -> None:
    async with _running(nats_url, postgres_dsn, tmp_path) as (_, p, call):
        other_arguments = await _ask(p.bus, call, args={"path": "/evil"})
        assert other_arguments.status == "ask"
        surplus = await _ask(p.bus, call, args={**SHOWN, "mode": 7})
        assert surplus.status == "ask"
        assert (await _ask(p.bus, call, node_id="n2")).status == "ask"
        assert (await _ask(p.bus, call, grant_digest="0" * 64)).status == "refused"
        assert (await _ask(p.bus, call, workflow_id=uuid4())).status == "refused"
        assert (await _ask(p.bus, call, attempt="again", occurrence=9)).status == "ok"
        assert (await _ask(p.bus, call)) == ToolOutcome(status="ok", result=dict(SHOWN))


async def test_a_policy_that_forbids_it_meanwhile_is_obeyed_at_the_next_call(
    nats_url: str, postgres_dsn: str, tmp_path: Path
) -> None:
    async with _running(nats_url, postgres_dsn, tmp_path) as (_, p, call):
        assert (await _ask(p.bus, call)).status == "ok"
        _policy(tmp_path / "policy.json", "deny")
        denied = await _ask(p.bus, call, occurrence=1)
        assert denied.status == "refused"
        assert "the policy forbids this call" in (denied.message or "")
        assert (await _ask(p.bus, call)).status == "ok", "its outcome is known"


async def test_a_grant_ends_with_its_workflow(
    nats_url: str, postgres_dsn: str, tmp_path: Path
) -> None:
    async with _running(nats_url, postgres_dsn, tmp_path) as (g, p, call):
        assert (await _ask(p.bus, call)).status == "ok"
        p.release.set()
        await g.ends(call.workflow_id, "success")

        async def refused() -> bool:
            return (await _ask(p.bus, call, occurrence=1)).status == "refused"

        await eventually(refused)
        assert (await _ask(p.bus, call)).status == "refused"
