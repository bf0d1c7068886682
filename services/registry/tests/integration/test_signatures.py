"""Versions are signed, and one that is not what was signed is not handed out to be run."""

import logging
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from pml_common.bus.errors import QueryFailed, Rejected
from pml_common.contracts import ids
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.dns import Fork, SetVisibility
from pml_common.contracts.gateway import WorkflowOutcome
from pml_common.contracts.registry import ListCapabilities, Reference
from pml_common.signing import SigningKey
from pml_registry.adapters.signed_mark import SignedMark
from pml_registry.application.signing_versions import SigningVersions
from pml_registry.domain.reservations import LAPSES_AFTER
from pml_registry.domain.visibility import Viewer
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import (
    ELSEWHERE,
    HASH,
    OTHER_HASH,
    SCOPE,
    SIMILAR_HASH,
    analysed,
    learning_update,
)
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import (
    VERIFIED_RUNS,
    Stores,
    registry_key,
    stores_on,
    version_keys,
)
from services.registry.tests.support.tampering import (
    Tamper,
    change_code,
    change_hash,
    copy_signature,
    point_to_other_code,
    remove_signature,
    run_sql,
)

pytestmark = pytest.mark.integration


async def two_versions(registry: StoreDriver) -> tuple[CapabilityRecord, CapabilityRecord]:
    """Make `fs:ensure` with two versions."""
    await registry.named("fs:ensure", analysed())
    second = analysed(OTHER_HASH)
    await registry.reserve("fs:ensure", second, update=True)
    await registry.settle(second)
    return await registry.resolve("fs:ensure@1"), await registry.resolve("fs:ensure@2")


TAMPERED: list[tuple[Tamper, str]] = [
    (change_code, "is not what the key"),
    (change_hash, "is not what the key"),
    (point_to_other_code, "is not what the key"),
    (copy_signature, "is not what the key"),
    (remove_signature, "it has no signature"),
]


async def test_each_version_is_signed_when_it_is_made(
    registry: StoreDriver, stores: Stores
) -> None:
    first, second = await two_versions(registry)
    assert {first.key_id, second.key_id} == {stores.checks.signing.key_id}
    assert first.signature != second.signature
    await registry.analysed(analysed(SIMILAR_HASH))
    unnamed = await registry.resolve(str(ids.capability_id(SCOPE, SIMILAR_HASH)))
    assert unnamed.key_id == stores.checks.signing.key_id
    assert await stores.signatures.others(stores.checks.signing.key_id, None, 10) == []


async def test_a_name_given_twice_is_signed_once(registry: StoreDriver) -> None:
    await registry.named("fs:ensure", analysed())
    second = analysed(OTHER_HASH)
    await registry.reserve("fs:ensure", second, update=True)
    await registry.settle(second)
    signed = await registry.resolve("fs:ensure")
    assert await registry.settle(second) is None
    await registry.analysed(second)
    again = await registry.resolve("fs:ensure")
    assert (again.version, again.signature) == (2, signed.signature)


async def test_copies_of_a_version_are_signed_and_a_tampered_one_is_not_copied(
    registry: StoreDriver, stores: Stores
) -> None:
    await registry.named("fs:ensure", analysed())
    await registry.change("fs:ensure", SetVisibility(visibility="public"))
    shared, stranger = "cap:acme.webapp:fs:ensure", Viewer(ELSEWHERE, "eve")
    (adopted,) = await registry.describe(shared, scope=ELSEWHERE)
    assert adopted.capability is not None
    fork = (await registry.change(shared, Fork(name="fs:mine"), stranger)).record
    assert (fork.scope, fork.key_id) == (ELSEWHERE, stores.checks.signing.key_id)
    assert await stores.signatures.others(stores.checks.signing.key_id, None, 10) == []
    record = await registry.resolve("fs:ensure")
    await change_code(stores, record, record)
    with pytest.raises(QueryFailed, match="is refused"):
        await registry.change(shared, Fork(name="fs:other"), stranger)
    (answer,) = await registry.describe(shared, scope=ELSEWHERE)
    assert "is refused" in (answer.refused or "")
    assert (await registry.resolve("fs:mine", ELSEWHERE)).record_id == fork.record_id


@pytest.mark.parametrize(("tamper", "why"), TAMPERED)
async def test_a_tampered_version_is_refused_and_reported(
    registry: StoreDriver,
    stores: Stores,
    caplog: pytest.LogCaptureFixture,
    tamper: Tamper,
    why: str,
) -> None:
    first, second = await two_versions(registry)
    await tamper(stores, first, second)
    with pytest.raises(QueryFailed, match=why) as refused:
        await registry.resolve("fs:ensure@1")
    assert refused.value.code == "conflict"
    assert f"version 1 of record {first.record_id} in acme.webapp" in refused.value.message
    assert (registry_errors(caplog), first.code not in caplog.text) == (1, True)
    (selected,) = await registry.describe("fs:ensure@1")
    assert (selected.capability, why in (selected.refused or "")) == (None, True)
    assert (await registry.resolve("fs:ensure")).code == second.code


async def test_no_reference_leads_to_a_tampered_version(
    registry: StoreDriver, stores: Stores
) -> None:
    await registry.named("fs:ensure", analysed())
    record = await registry.resolve("fs:ensure")
    await change_code(stores, record, record)
    references = ("fs:ensure", "fs_ensure", str(record.capability_id), str(record.record_id))
    for answer in await registry.describe(*references):
        assert (answer.capability, answer.near) == (None, ())
        assert answer.refused is not None
    for reference in references:
        if reference != "fs_ensure":
            with pytest.raises(QueryFailed, match="is refused"):
                await registry.resolve(reference)
    with pytest.raises(QueryFailed, match="is refused"):
        await registry.set_cache("fs:ensure", {"policy": "none"})


async def test_a_tampered_version_is_listed_and_not_verified(
    registry: StoreDriver, stores: Stores
) -> None:
    await registry.named("fs:ensure", analysed())
    await registry.learned(learning_update(VERIFIED_RUNS))
    record = await registry.resolve("fs:ensure")
    (listed,) = (await stores.capabilities.page(ListCapabilities(scope=SCOPE))).capabilities
    assert record.verified
    assert listed.verified
    await change_code(stores, record, record)
    (listed,) = (await stores.capabilities.page(ListCapabilities(scope=SCOPE))).capabilities
    assert not listed.verified


@pytest.mark.parametrize(
    ("streak", "verified"), [(VERIFIED_RUNS - 1, False), (VERIFIED_RUNS, True)]
)
async def test_a_version_is_verified_once_its_last_runs_have_succeeded(
    registry: StoreDriver, streak: int, verified: bool
) -> None:
    await registry.named("fs:ensure", analysed())
    update = learning_update(9, successes=8)
    usage = update.usage.model_copy(update={"success_streak": streak})
    await registry.learned(update.model_copy(update={"usage": usage}))
    record = await registry.resolve("fs:ensure")
    assert (record.verified, record.usage.success_streak) == (verified, streak)
    (answer,) = await registry.describe("fs:ensure")
    assert described(answer) == (HASH, verified)
    (answer,) = await registry.describe("fs:ensure@1")
    assert described(answer) == (HASH, verified)


async def test_code_that_was_tampered_with_before_it_is_a_version_is_not_signed(
    registry: StoreDriver, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    await registry.named("fs:ensure", analysed())
    for number, end in enumerate((OTHER_HASH, SIMILAR_HASH)):
        program = analysed(end)
        await registry.reserve("fs:ensure", program, update=True)
        made = await registry.resolve(str(program.capability.capability_id))
        await change_code(stores, made, made)
        if number:
            with pytest.raises(QueryFailed, match="is not signed") as refused:
                await registry.settle(program)
            assert refused.value.code == "conflict"
        else:
            registry.now += LAPSES_AFTER
            registry.outcomes[program.workflow_id] = WorkflowOutcome(state="succeeded")
            await registry.naming.look_at_lapsed()
            assert "fs:ensure is not given" in caplog.text
        assert (await registry.resolve("fs:ensure")).version == 1
    assert (await registry.reserve("fs:ensure", analysed("a7f4" * 16), update=True)).version == 2


async def test_a_record_is_not_made_for_code_that_is_stored_under_a_false_hash(
    registry: StoreDriver, stores: Stores
) -> None:
    await registry.analysed(analysed())
    record = await registry.resolve(str(ids.capability_id(SCOPE, HASH)))
    await change_code(stores, record, record)
    await run_sql(stores, "DELETE FROM capability_records")
    with pytest.raises(Rejected, match="is not signed"):
        await registry.analysed(analysed())


async def test_versions_from_before_are_signed_once_and_then_only_signed_ones_run(
    registry: StoreDriver, stores: Stores, tmp_path: Path
) -> None:
    first, _ = await two_versions(registry)
    await remove_signature(stores, first, first)
    mark = SignedMark(tmp_path / "signed")
    assert not mark.is_set
    stores.checks.accepts_unsigned = True
    unsigned = await registry.resolve("fs:ensure@1")
    assert (unsigned.signature, unsigned.verified) == (None, False)
    signing = SigningVersions(stores.signatures, stores.checks, mark.set)
    await signing.sign_all()
    assert mark.is_set
    assert (await registry.resolve("fs:ensure@1")).signature == first.signature
    await remove_signature(stores, first, first)
    await signing.sign_all()
    with pytest.raises(QueryFailed, match="it has no signature"):
        await registry.resolve("fs:ensure@1")


async def test_code_from_before_that_is_not_what_its_hash_says_is_not_signed(
    registry: StoreDriver, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = await two_versions(registry)
    await remove_signature(stores, first, first)
    await change_code(stores, first, first)
    stores.checks.accepts_unsigned = True
    await SigningVersions(stores.signatures, stores.checks, lambda: None).sign_all()
    assert f"version 1 of record {first.record_id} in acme.webapp is not signed" in caplog.text
    with pytest.raises(QueryFailed, match="it has no signature"):
        await registry.resolve("fs:ensure@1")
    assert (await registry.resolve("fs:ensure")).signature == second.signature


async def test_after_a_change_of_the_key_versions_are_signed_with_the_new_one(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    first, second = await two_versions(registry)
    new = SigningKey.generate("registry")
    rotated = stores_on(stores.pools, version_keys(new, registry_key()))
    after = StoreDriver(rotated, embedder)
    assert (await after.resolve("fs:ensure@1")).signature == first.signature
    await change_code(rotated, second, second)
    await SigningVersions(rotated.signatures, rotated.checks, lambda: None).sign_all()
    assert (await after.resolve("fs:ensure@1")).key_id == new.kid
    alone = StoreDriver(stores_on(stores.pools, version_keys(new)), embedder)
    assert (await alone.resolve("fs:ensure@1")).key_id == new.kid
    for each in (after, alone):
        with pytest.raises(QueryFailed, match=f"not what the key {first.key_id} has signed"):
            await each.resolve("fs:ensure@2")


async def test_a_key_that_is_not_trusted_any_more_has_signed_nothing(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    await registry.named("fs:ensure", analysed())
    other = stores_on(stores.pools, version_keys(SigningKey.generate("registry")))
    with pytest.raises(QueryFailed, match="or that key is not trusted any more"):
        await StoreDriver(other, embedder).resolve("fs:ensure")


async def test_a_signature_is_stored_over_the_one_that_was_read_alone(
    registry: StoreDriver, stores: Stores
) -> None:
    await two_versions(registry)
    (first, *_), before = await stores.signatures.others("none", None, 2), UUID(int=0)
    assert first.signature is not None
    stale = replace(first, signature=replace(first.signature, value="AAAA"))
    swapped = replace(first, statement=replace(first.statement, behaviour=before))
    for version in (stale, swapped):
        await stores.signatures.replace(version, replace(first.signature, key_id="other"))
    assert await stores.signatures.others("none", None, 1) == [first]
    (second,) = await stores.signatures.others("none", first, 5)
    assert second.statement.number == 2


def described(answer: Reference) -> tuple[str, bool]:
    assert answer.capability is not None
    return answer.capability.code_hash, answer.capability.verified


def registry_errors(caplog: pytest.LogCaptureFixture) -> int:
    return len([each for each in caplog.records if each.levelno == logging.ERROR])
