"""Capabilities through their handlers, on every kind of store."""

import asyncio
import logging
from collections.abc import Sequence
from uuid import uuid4

import pytest

from pml_common.bus.errors import QueryFailed, Rejected, Retryable
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityChanged, ListCapabilities, ResolveCapability
from pml_common.contracts.scope import Scope
from pml_registry.handlers.on_execution_analyzed import on_execution_analyzed
from pml_registry.handlers.on_learning_updated import on_learning_updated
from pml_registry.handlers.on_list_capabilities import on_list_capabilities
from pml_registry.handlers.on_resolve_capability import on_resolve_capability
from pml_registry.ports import Embedder
from services.registry.tests.samples import (
    ELSEWHERE,
    HASH,
    OTHER_HASH,
    SCOPE,
    SIMILAR_HASH,
    UNNAMED,
    analysed,
    lesson,
)
from services.registry.tests.stores import Stores


class Registry:
    """Handles as the bus would, and asks."""

    def __init__(self, stores: Stores, embedder: Embedder) -> None:
        self._stores = stores
        self._embedder = embedder

    async def analysed(self, analysis: ExecutionAnalyzed) -> Sequence[Message]:
        return await on_execution_analyzed(analysis, self._stores.capabilities, self._embedder)

    async def learned(self, updated: LearningUpdated) -> Sequence[Message]:
        return await on_learning_updated(updated, self._stores.capabilities)

    async def resolve(self, reference: str, scope: Scope = SCOPE) -> CapabilityRecord:
        query = ResolveCapability(scope=scope, reference=reference)
        return await on_resolve_capability(query, self._stores.capabilities)

    async def names(self, *, unlisted: bool = True, scope: Scope = SCOPE) -> list[str]:
        query = ListCapabilities(scope=scope, include_unlisted=unlisted)
        page = await on_list_capabilities(query, self._stores.capabilities)
        return [record.name for record in page.capabilities]


@pytest.fixture
def registry(stores: Stores, embedder: Embedder) -> Registry:
    """A registry on each kind of store."""
    return Registry(stores, embedder)


def _changes(facts: Sequence[Message]) -> list[tuple[str, str]]:
    return [(fact.name, fact.change) for fact in facts if isinstance(fact, CapabilityChanged)]


async def test_an_analysis_creates_an_unlisted_capability(registry: Registry) -> None:
    analysis = analysed(intent="read it")
    assert _changes(await registry.analysed(analysis)) == [(UNNAMED, "created")]
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
    assert (record.description, record.tools_used) == ("read it", ("fs:stat", "fs:read"))
    assert (record.created_by, record.usage.count) == ("agent-7", 0)


async def test_an_analysis_delivered_twice_creates_once_and_states_the_same(
    registry: Registry,
) -> None:
    analysis = analysed(name="fs:ensure")
    facts = await registry.analysed(analysis)
    assert list(await registry.analysed(analysis)) == list(facts)
    assert await registry.names() == ["fs:ensure"]


async def test_the_same_code_analysed_again_is_the_same_capability(registry: Registry) -> None:
    await registry.analysed(analysed())
    assert await registry.analysed(analysed()) == ()
    assert await registry.names() == [UNNAMED]


async def test_similar_hashes_get_names_with_more_digits(registry: Registry) -> None:
    await registry.analysed(analysed(HASH))
    await registry.analysed(analysed(SIMILAR_HASH))
    assert sorted(await registry.names()) == [UNNAMED, f"{UNNAMED}1"]


async def test_a_name_somebody_holds_is_not_given_twice(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    await registry.analysed(analysed(name="fs:ensure"))
    with caplog.at_level(logging.WARNING):
        facts = await registry.analysed(analysed(OTHER_HASH, name="fs:ensure"))
    assert _changes(facts) == [("unnamed_c0de", "created")]
    assert "fs:ensure" in caplog.text
    assert (await registry.resolve("fs:ensure")).code_hash == HASH


async def test_one_name_asked_for_twice_at_once_goes_to_one(registry: Registry) -> None:
    await asyncio.gather(
        registry.analysed(analysed(HASH, name="fs:ensure")),
        registry.analysed(analysed(OTHER_HASH, name="fs:ensure")),
    )
    first, second = sorted(await registry.names())
    assert first == "fs:ensure"
    assert second in (UNNAMED, "unnamed_c0de")


async def test_one_capability_analysed_twice_at_once_is_created_once(registry: Registry) -> None:
    said = await asyncio.gather(registry.analysed(analysed()), registry.analysed(analysed()))
    assert sorted(map(_changes, said)) == [[], [(UNNAMED, "created")]]


async def test_a_capability_named_later_is_found_by_both_names(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    await registry.analysed(analysed())
    facts = await registry.analysed(analysed(name="fs:ensure", intent="make sure"))
    assert _changes(facts) == [("fs:ensure", "named")]
    record = await registry.resolve("fs:ensure")
    assert (record.named, record.description) == (True, "make sure")
    with caplog.at_level(logging.WARNING):
        assert await registry.resolve(UNNAMED) == record
    assert "is now fs:ensure" in caplog.text
    await registry.analysed(analysed(SIMILAR_HASH))
    assert sorted(await registry.names()) == ["fs:ensure", f"{UNNAMED}1"]


async def test_an_intent_fills_an_empty_description_only(registry: Registry) -> None:
    await registry.analysed(analysed())
    await registry.analysed(analysed(intent="read it"))
    await registry.analysed(analysed(intent="something else"))
    assert (await registry.resolve(UNNAMED)).description == "read it"


async def test_code_with_a_nul_is_rejected_and_an_intent_with_one_is_not(
    registry: Registry,
) -> None:
    with pytest.raises(Rejected, match="NUL"):
        await registry.analysed(analysed(code="'\x00'"))
    await registry.analysed(analysed(intent="read\x00it"))
    assert (await registry.resolve(UNNAMED)).description.startswith("read")


@pytest.mark.parametrize("reference", ["fs:ensure", "cap:fs:ensure"])
async def test_a_capability_is_found_by_its_name(registry: Registry, reference: str) -> None:
    await registry.analysed(analysed(name="fs:ensure"))
    assert (await registry.resolve(reference)).name == "fs:ensure"


async def test_a_capability_is_found_by_its_id(registry: Registry) -> None:
    analysis = analysed()
    await registry.analysed(analysis)
    record = await registry.resolve(str(analysis.capability.capability_id))
    assert record.name == UNNAMED


async def test_an_unknown_name_is_answered_with_near_ones(registry: Registry) -> None:
    await registry.analysed(analysed(name="fs:ensure_file"))
    with pytest.raises(QueryFailed, match="did you mean fs:ensure_file") as failure:
        await registry.resolve("cap:fs:ensure_fil")
    assert failure.value.code == "not_found"


@pytest.mark.parametrize("reference", [str(uuid4()), "zzz:zzz", "a\x00b"])
async def test_what_is_near_nothing_is_just_not_found(registry: Registry, reference: str) -> None:
    await registry.analysed(analysed(name="fs:ensure_file"))
    with pytest.raises(QueryFailed) as failure:
        await registry.resolve(reference)
    assert failure.value.code == "not_found"
    assert "did you mean" not in failure.value.message


async def test_the_first_success_lists_a_capability(registry: Registry) -> None:
    await registry.analysed(analysed())
    assert _changes(await registry.learned(lesson(1, successes=0))) == [(UNNAMED, "learned")]
    assert await registry.names(unlisted=False) == []
    assert _changes(await registry.learned(lesson(2, successes=1))) == [(UNNAMED, "listed")]
    assert await registry.names(unlisted=False) == [UNNAMED]
    record = await registry.resolve(UNNAMED)
    assert (record.usage.count, record.usage.success_count, record.listed) == (2, 1, True)
    assert record.learning == lesson(2).learning


async def test_of_lessons_in_any_order_the_newest_stands(registry: Registry) -> None:
    await registry.analysed(analysed())
    for revision in (2, 5, 1, 4, 3):
        await registry.learned(lesson(revision))
    assert (await registry.resolve(UNNAMED)).usage.count == 5


async def test_lessons_at_once_leave_the_newest(registry: Registry) -> None:
    await registry.analysed(analysed())
    await asyncio.gather(*(registry.learned(lesson(revision)) for revision in range(1, 11)))
    assert (await registry.resolve(UNNAMED)).usage.count == 10


async def test_a_lesson_delivered_twice_states_the_same(registry: Registry) -> None:
    await registry.analysed(analysed())
    updated = lesson(1)
    facts = await registry.learned(updated)
    await registry.learned(lesson(2))
    assert list(await registry.learned(updated)) == list(facts)
    assert (await registry.resolve(UNNAMED)).usage.count == 2


async def test_a_lesson_on_a_capability_not_known_yet_is_kept_for_later(
    registry: Registry,
) -> None:
    updated = lesson(1)
    with pytest.raises(Retryable):
        await registry.learned(updated)
    await registry.analysed(analysed())
    assert _changes(await registry.learned(updated)) == [(UNNAMED, "listed")]


async def test_capabilities_are_listed_most_used_first_in_pages(
    registry: Registry, stores: Stores
) -> None:
    for code_hash, name in ((HASH, "fs:b"), (OTHER_HASH, "fs:c"), ("beef" * 16, "fs:a")):
        await registry.analysed(analysed(code_hash, name=name))
    await registry.learned(lesson(4, code_hash=OTHER_HASH))
    assert await registry.names() == ["fs:c", "fs:a", "fs:b"]
    query = ListCapabilities(scope=SCOPE, include_unlisted=True, limit=1, offset=1)
    page = await on_list_capabilities(query, stores.capabilities)
    assert ([record.name for record in page.capabilities], page.total) == (["fs:a"], 3)


async def test_no_scope_sees_or_blocks_another(registry: Registry) -> None:
    await registry.analysed(analysed(name="fs:ensure"))
    assert _changes(await registry.analysed(analysed(name="fs:ensure", scope=ELSEWHERE))) == [
        ("fs:ensure", "created")
    ]
    await registry.learned(lesson(3, scope=ELSEWHERE))
    ours = await registry.resolve("fs:ensure")
    assert (ours.scope, ours.usage.count, ours.listed) == (SCOPE, 0, False)
    with pytest.raises(QueryFailed):
        await registry.resolve(str(ours.capability_id), scope=ELSEWHERE)
    assert await registry.names(scope=ELSEWHERE) == ["fs:ensure"]
