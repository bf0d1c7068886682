"""Curation on real NATS and Postgres."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from libs.pml_common.tests.support.harness import key_files
from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import catalog
from pml_common.contracts.curation import (
    Curate,
    Curation,
    LiftCapability,
    NameChoice,
    SaveCapability,
)
from pml_common.contracts.registry import ResolveCapability
from pml_registry.app import serve
from pml_registry.settings import RegistrySettings
from services.registry.tests.support.builders import SCOPE, learning_update
from services.registry.tests.support.curation_driver import program

pytestmark = pytest.mark.integration

ASKING = {"scope": SCOPE, "principal": "agent-7"}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Contexts that are left after the test."""
    with ExitStack() as entered:
        yield entered


async def test_programs_that_ran_are_suggested_named_and_made_one(
    nats_url: str, postgres_dsn: str, stack: ExitStack
) -> None:
    identity = all_services_identity()
    gateway = await NatsBus.connect(nats_url, service="gateway", identity=identity)
    registry = await NatsBus.connect(nats_url, service="registry", identity=identity)
    variants = [program(f"return await mcp.fs.read({{ path: '{name}' }});") for name in "ab"]
    diff = program("return await mcp.git.diff({});", "show changes")
    keys = stack.enter_context(key_files("registry"))
    settings = RegistrySettings(postgres_dsn=postgres_dsn).model_copy(update=keys)
    async with serve(settings, registry):
        for analysis in (*variants, diff):
            await gateway.publish(analysis)
            code_hash, intent = analysis.capability.code_hash, analysis.intent
            await gateway.publish(learning_update(code_hash=code_hash, intent=intent))

        async def suggested() -> Curation | None:
            found = await gateway.request(catalog.CURATE, Curate.model_validate(ASKING))
            return found if len(found.suggestions) == 2 and found.merges else None

        found = await eventually(suggested)
        assert found is not None
        names = {each.capability_id: each.name for each in found.suggestions}
        assert names[diff.capability.capability_id] == "git:show_changes"
        choice = NameChoice(capability_id=diff.capability.capability_id, name="git:changes")
        apply = Curate.model_validate({**ASKING, "mode": "apply", "names": [choice]})
        assert len((await gateway.request(catalog.CURATE, apply)).given) == 1
        (merge,) = found.merges
        lift = LiftCapability.model_validate({**ASKING, "reference": merge.name})
        lifted = program((await gateway.request(catalog.LIFT_CAPABILITY, lift)).code)
        asked = {**ASKING, "name": "fs:read_any", "reference": merge.name, "lifted": lifted}
        save = SaveCapability.model_validate(asked)
        assert (await gateway.request(catalog.SAVE_CAPABILITY, save)).purpose == "create"
        resolve = ResolveCapability(scope=SCOPE, reference="fs:read_any")
        record = await gateway.request(catalog.RESOLVE_CAPABILITY, resolve)
        assert (record.code, record.listed) == (lifted.code, True)
        after = await gateway.request(catalog.CURATE, Curate.model_validate(ASKING))
        assert (after.unnamed, after.merges) == (0, ())
        await registry.drain()
    await gateway.drain()
