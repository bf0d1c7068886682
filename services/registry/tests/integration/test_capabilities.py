"""Analysed and queried capabilities."""

import asyncio
import logging
from uuid import UUID

import pytest

from pml_common.bus.errors import QueryFailed, Rejected
from services.registry.tests.support.builders import (
    HASH,
    OTHER_HASH,
    SIMILAR_HASH,
    UNNAMED,
    analysed,
    learning_update,
)
from services.registry.tests.support.store_driver import StoreDriver, changes

pytestmark = pytest.mark.integration


async def test_an_analysis_creates_an_unlisted_capability(registry: StoreDriver) -> None:
    analysis = analysed(intent="read it")
    assert changes(await registry.analysed(analysis)) == [(UNNAMED, "created")]
    record = await registry.resolve(UNNAMED)
    assert (record.capability_id, record.listed, record.named) == (
        analysis.capability.capability_id,
        False,
        False,
    )
    assert (record.code, record.code_hash) == (analysis.code, HASH)
    assert (record.structure, record.parameters_schema) == (
        analysis.structure,
        analysis.parameters_schema,
    )
    assert (record.description, record.tools_used) == ("", ("fs:stat", "fs:read"))
    assert (record.created_by, record.usage.count) == ("agent-7", 0)


async def test_an_analysis_delivered_twice_creates_once_and_publishes_the_same(
    registry: StoreDriver,
) -> None:
    analysis = analysed(name="fs:ensure")
    messages = await registry.analysed(analysis)
    assert list(await registry.analysed(analysis)) == list(messages)
    assert await registry.names() == [UNNAMED]


async def test_a_dry_run_creates_no_capability_and_takes_no_name(registry: StoreDriver) -> None:
    dry = analysed(name="fs:ensure").model_copy(update={"dry_run": True})
    assert await registry.analysed(dry) == []
    assert await registry.names() == []


async def test_the_same_code_analysed_again_is_the_same_capability(registry: StoreDriver) -> None:
    await registry.analysed(analysed())
    assert await registry.analysed(analysed()) == []
    assert await registry.names() == [UNNAMED]


async def test_ac03_similar_hashes_get_names_with_more_digits(registry: StoreDriver) -> None:
    await registry.analysed(analysed(HASH))
    await registry.analysed(analysed(SIMILAR_HASH))
    assert sorted(await registry.names()) == [UNNAMED, f"{UNNAMED}1"]


async def test_a_capability_analysed_twice_concurrently_is_created_once(
    registry: StoreDriver,
) -> None:
    said = await asyncio.gather(registry.analysed(analysed()), registry.analysed(analysed()))
    assert sorted(map(changes, said)) == [[], [(UNNAMED, "created")]]


async def test_a_capability_named_later_is_found_by_both_names(
    registry: StoreDriver, caplog: pytest.LogCaptureFixture
) -> None:
    await registry.analysed(analysed())
    await registry.named("fs:ensure", analysed(intent="make sure"))
    assert changes(registry.published) == [("fs:ensure", "named")]
    record = await registry.resolve("fs:ensure")
    assert (record.named, record.description) == (True, "make sure")
    with caplog.at_level(logging.WARNING):
        by_former = await registry.resolve(UNNAMED)
    assert by_former == record.model_copy(update={"notices": by_former.notices})
    assert by_former.notices == (f"{UNNAMED} was renamed to fs:ensure; use the new name",)
    assert "was renamed to fs:ensure" in caplog.text
    await registry.analysed(analysed(SIMILAR_HASH))
    assert sorted(await registry.names()) == ["fs:ensure", f"{UNNAMED}1"]


async def test_code_with_a_nul_is_rejected_and_an_intent_with_one_is_not(
    registry: StoreDriver,
) -> None:
    with pytest.raises(Rejected, match="NUL"):
        await registry.analysed(analysed(code="'\x00'"))
    await registry.named("fs:read", analysed(intent="read\x00it"))
    assert (await registry.resolve("fs:read")).description.startswith("read")
    await registry.analysed(analysed(OTHER_HASH))
    await registry.learned(learning_update(code_hash=OTHER_HASH, intent="write\x00it"))
    other = await registry.resolve(str(analysed(OTHER_HASH).capability.capability_id))
    assert other.description.startswith("write")


@pytest.mark.parametrize("reference", ["fs:ensure", "cap:fs:ensure"])
async def test_a_capability_is_found_by_its_name(registry: StoreDriver, reference: str) -> None:
    await registry.named("fs:ensure", analysed())
    assert (await registry.resolve(reference)).name == "fs:ensure"


async def test_a_capability_is_found_by_its_id(registry: StoreDriver) -> None:
    analysis = analysed()
    await registry.analysed(analysis)
    record = await registry.resolve(str(analysis.capability.capability_id))
    assert record.name == UNNAMED


async def test_an_unknown_name_is_answered_with_similar_ones(registry: StoreDriver) -> None:
    await registry.named("fs:ensure_file", analysed())
    with pytest.raises(QueryFailed, match="did you mean fs:ensure_file") as failure:
        await registry.resolve("cap:fs:ensure_fil")
    assert failure.value.code == "not_found"


@pytest.mark.parametrize("reference", [str(UUID(int=0xC0DE)), "zzz:zzz"])
async def test_a_name_without_similar_ones_is_just_not_found(
    registry: StoreDriver, reference: str
) -> None:
    await registry.named("fs:ensure_file", analysed())
    with pytest.raises(QueryFailed) as failure:
        await registry.resolve(reference)
    assert failure.value.code == "not_found"
    assert "did you mean" not in failure.value.message
