"""Versions in `whois` and history: signed by whom, when, and verified or not."""

import pytest

from services.registry.tests.support.builders import HASH, OTHER_HASH, analysed, learning_update
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import VERIFIED_RUNS, Stores
from services.registry.tests.support.tampering import change_code

pytestmark = pytest.mark.integration


async def test_whois_and_history_say_who_signed_each_version_when_and_if_it_is_verified(
    registry: StoreDriver, stores: Stores
) -> None:
    await registry.named("fs:ensure", analysed())
    better = analysed(OTHER_HASH)
    await registry.reserve("fs:ensure", better, update=True)
    await registry.settle(better)
    first, second = [await registry.resolve(f"fs:ensure@{number}") for number in (1, 2)]
    await registry.learned(learning_update(VERIFIED_RUNS, code_hash=HASH))
    newest, oldest = (await registry.whois("fs:ensure")).versions
    assert (newest.signature, oldest.signature) == (second.signature, first.signature)
    assert {newest.key_id, oldest.key_id} == {stores.checks.signing.key_id}
    assert (newest.verified, oldest.verified) == (False, True)
    assert oldest.signed_at is not None
    assert newest.signed_at is not None
    assert newest.signed_at >= newest.created_at >= oldest.signed_at
    versioned, *_, created = (await registry.history("fs:ensure")).entries
    assert (versioned.key_id, versioned.signed_at) == (newest.key_id, newest.signed_at)
    assert (created.key_id, created.signed_at) == (oldest.key_id, oldest.signed_at)
    await change_code(stores, first, second)
    assert [each.verified for each in (await registry.whois("fs:ensure")).versions] == [
        False,
        False,
    ]
