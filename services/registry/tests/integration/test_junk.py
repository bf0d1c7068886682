"""Programs that are kept and not offered."""

import asyncio

import pytest

from pml_common.bus.errors import QueryFailed, Rejected
from pml_common.contracts import ids
from pml_common.contracts.dns import Fork, Rename
from pml_registry.domain.visibility import Viewer
from pml_registry.entrypoints.bus.on_learning_updated import on_learning_updated
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import SCOPE, learning_update
from services.registry.tests.support.curation_driver import CurationDriver, program
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration

READ = "return await mcp.fs.read({ path: 'a.json' });"
READ_OTHER = 'return await mcp.fs.read({path:"b.json"})  // another'
PURE = "return [1, 2].map((x) => x * 2);"


async def test_a_program_without_a_call_is_kept_and_not_offered(curation: CurationDriver) -> None:
    pure = await curation.ran(PURE)
    assert await curation.base.names(unlisted=False) == []
    record = await curation.base.resolve(str(pure.capability.capability_id))
    assert (record.listed, record.usage.success_count) == (False, 1)


async def test_a_program_that_differs_from_a_listed_one_by_literals_alone_is_not_offered(
    curation: CurationDriver,
) -> None:
    first = await curation.ran(READ)
    other = await curation.ran(READ_OTHER)
    (listed,) = await curation.base.names(unlisted=False)
    assert (await curation.base.resolve(listed)).code_hash == first.capability.code_hash
    kept = await curation.base.resolve(str(other.capability.capability_id))
    assert (kept.listed, kept.usage.success_count) == (False, 1)
    await curation.learned(other, 2)
    await curation.learned(first, 2)
    assert await curation.base.names(unlisted=False) == [listed]


async def test_one_that_differs_from_a_listed_one_of_another_scope_is_offered(
    curation: CurationDriver,
) -> None:
    elsewhere = program(READ, scope=SCOPE.model_copy(update={"org": "rival"}))
    await curation.analysed(elsewhere)
    await curation.learned(elsewhere)
    await curation.ran(READ_OTHER)
    assert len(await curation.base.names(unlisted=False)) == 1


async def test_a_given_name_lists_any_program(curation: CurationDriver) -> None:
    await curation.ran(READ)
    await curation.named("fs:read_b", program(READ_OTHER))
    await curation.named("math:double", program(PURE))
    assert {"fs:read_b", "math:double"} < {*await curation.base.names(unlisted=False)}


@pytest.mark.parametrize("giving", [Rename(name="math:double"), Fork(name="math:double")])
async def test_a_name_that_is_given_later_lists_any_program(
    curation: CurationDriver, giving: Rename | Fork
) -> None:
    pure = await curation.ran(PURE)
    await curation.base.change(str(pure.capability.capability_id), giving)
    assert "math:double" in await curation.base.names(unlisted=False)


@pytest.mark.parametrize("giving", [Rename(name="fs:read_a"), Fork(name="fs:read_a")])
async def test_a_program_that_has_not_succeeded_is_given_no_name(
    curation: CurationDriver, giving: Rename | Fork
) -> None:
    failed, corrected = program(READ), program(PURE)
    await curation.analysed(failed)
    with pytest.raises(QueryFailed, match=r"no run of unnamed_.* has succeeded") as refused:
        await curation.base.change(str(failed.capability.capability_id), giving)
    assert refused.value.code == "conflict"
    await curation.named("fs:read_a", corrected)
    assert (await curation.base.lookup("fs:read_a")).version == 1


async def test_a_program_that_differs_from_a_named_one_by_literals_alone_is_not_offered(
    curation: CurationDriver,
) -> None:
    await curation.named("fs:read_a", program(READ))
    await curation.ran(READ_OTHER)
    assert await curation.base.names(unlisted=False) == ["fs:read_a"]


async def test_of_variants_that_succeed_at_once_one_is_offered(
    curation: CurationDriver, stores: Stores, embedder: Embedder
) -> None:
    variants = [program(READ.replace("a.json", f"{number}.json")) for number in range(12)]
    await curation.analysed(*variants)
    updates = [learning_update(1, code_hash=each.capability.code_hash) for each in variants]
    await asyncio.gather(
        *(on_learning_updated([update], stores.capabilities, embedder) for update in updates[:6]),
        on_learning_updated(updates[6:], stores.capabilities, embedder),
    )
    assert len(await curation.base.names(unlisted=False)) == 1
    assert len(await curation.base.names()) == 12


async def test_shapes_of_programs_from_before_are_read(
    curation: CurationDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(_: str) -> None:
        return None

    with monkeypatch.context() as before:
        before.setattr(curation.hashing, "shape_of", unknown)
        first = await curation.ran(READ)
    id_ = first.capability.capability_id
    assert [variant.capability_id for _, variant in await curation.store.unread(10)] == [id_]
    await curation.curator.look(0)
    assert list(await curation.store.unread(10)) == []
    await curation.ran(READ_OTHER)
    assert len(await curation.base.names(unlisted=False)) == 1
    assert len(await curation.store.variants_of(Viewer(SCOPE), id_, 10)) == 2


async def test_only_code_that_matches_its_hash_is_admitted(curation: CurationDriver) -> None:
    true = program("const a = args.n; return a + 1;")
    for code, reason in (
        ("return 2", "the code's hash is"),
        ("return 1\x00", "NUL"),
        ("return (", "the code's hash is None"),
    ):
        with pytest.raises(Rejected, match=reason):
            await curation.analysed(true.model_copy(update={"code": code}))
    another = true.capability.model_copy(
        update={"capability_id": ids.capability_id(SCOPE, "0" * 64)}
    )
    with pytest.raises(Rejected, match="is not the id of"):
        await curation.analysed(true.model_copy(update={"capability": another}))
    await curation.analysed(true)
    stored = await curation.base.resolve(str(true.capability.capability_id))
    assert stored.code == true.code
