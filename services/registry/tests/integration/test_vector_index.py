"""One contract of every vector index: in Postgres, in Qdrant (its local mode)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from uuid import UUID, uuid5

import numpy as np
import pytest

from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns
from pml_registry.adapters.qdrant import QdrantIndex, collection_of, point_id
from pml_registry.domain.ranking import Kind
from pml_registry.ports.vectors import EmbeddingModel, Point, PointKey, Vector, VectorIndex
from services.registry.tests.support.builders import ELSEWHERE, SCOPE
from services.registry.tests.support.stores import Stores
from services.registry.tests.support.vectors import local_client

SMALL, OTHER = EmbeddingModel("small", 3), EmbeddingModel("BAAI/other-1.5", 4)

# Of the local mode: an index of payloads makes a difference in a server only.
pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect")


@pytest.fixture(params=[pytest.param("postgres", marks=pytest.mark.integration), "qdrant"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | Stores:
    """A folder for Qdrant's local mode, or stores in Postgres."""
    return tmp_path if request.param == "qdrant" else request.getfixturevalue("stores")


@pytest.fixture
async def index(place: Path | Stores) -> AsyncGenerator[VectorIndex]:
    """Each kind of index, with two prepared models."""
    if isinstance(place, Path):
        async with aclosing(QdrantIndex(local_client(place), timeout_s=20.0)) as qdrant:
            yield await _prepared(qdrant)
    else:
        index = await _prepared(place.index)
        yield index
        for model in (SMALL, OTHER):
            await index.drop(model.name)


async def _prepared(index: VectorIndex) -> VectorIndex:
    assert await index.prepare(SMALL)
    assert await index.prepare(OTHER)
    return index


def key(name: str, kind: Kind = "tool", scope: Scope = SCOPE) -> PointKey:
    id_ = f"fs:{name}" if kind == "tool" else str(uuid5(UUID(int=0), name))
    return PointKey(*scope_columns(scope), kind, id_)


def unit(*numbers: float) -> Vector:
    return [number / float(np.linalg.norm(numbers)) for number in numbers]


def point(name: str, *numbers: float, kind: Kind = "tool", scope: Scope = SCOPE) -> Point:
    return Point(key(name, kind, scope), unit(*numbers))


async def test_the_nearest_come_first_with_their_cosines(index: VectorIndex) -> None:
    near, far, opposite = point("near", 1, 0.1, 0), point("far", 0, 1, 0), point("no", -1, 0, 0)
    await index.upsert("small", [far, opposite, near])
    found = await index.nearest(SCOPE, "tool", "small", unit(1, 0, 0), 2)
    assert [each.id for each in found] == [near.key.id, far.key.id]
    assert [each.cosine for each in found] == pytest.approx([near.vector[0], 0.0], abs=1e-5)


async def test_kinds_scopes_and_models_are_apart(index: VectorIndex) -> None:
    one = point("one", 1, 0, 0)
    await index.upsert(
        "small",
        [one, point("one", 1, 0, 0, kind="capability"), point("one", 1, 0, 0, scope=ELSEWHERE)],
    )
    await index.upsert("BAAI/other-1.5", [point("two", 1, 0, 0, 0)])
    found = await index.nearest(SCOPE, "tool", "small", unit(1, 0, 0), 9)
    assert [each.id for each in found] == [one.key.id]
    assert await index.nearest(ELSEWHERE, "capability", "small", unit(1, 0, 0), 9) == []
    assert (await index.count("small"), await index.count("BAAI/other-1.5")) == (3, 1)


async def test_a_vector_stored_again_replaces_the_former(index: VectorIndex) -> None:
    for _ in range(2):
        await index.upsert("small", [point("one", 0, 1, 0)])
    await index.upsert("small", [point("one", 1, 0, 0)])
    (found,) = await index.nearest(SCOPE, "tool", "small", unit(1, 0, 0), 9)
    assert found.cosine == pytest.approx(1.0)
    assert await index.count("small") == 1


async def test_a_removed_vector_is_not_found(index: VectorIndex) -> None:
    await index.upsert("small", [point("one", 1, 0, 0), point("two", 0, 1, 0)])
    for _ in range(2):
        await index.delete("small", [key("one"), key("never there")])
    found = await index.nearest(SCOPE, "tool", "small", unit(1, 0, 0), 9)
    assert [each.id for each in found] == [key("two").id]


async def test_nothing_is_stored_and_removed_without_error(index: VectorIndex) -> None:
    await index.upsert("small", [])
    await index.delete("small", [])
    assert await index.nearest(SCOPE, "tool", "small", unit(1, 0, 0), 9) == []
    assert await index.keys("small", None, 9) == ([], None)


async def test_keys_are_read_in_pages(index: VectorIndex) -> None:
    points = [point(f"t{at}", 1, at, 0) for at in range(3)]
    points += [point(f"c{at}", 1, at, 0, kind="capability", scope=ELSEWHERE) for at in range(2)]
    await index.upsert("small", points)
    found: list[PointKey] = []
    after: str | None = None
    for _ in range(len(points)):
        page, after = await index.keys("small", after, 2)
        assert len(page) <= 2
        found += page
        if after is None:
            break
    assert sorted(found) == sorted(each.key for each in points)


async def test_preparing_again_keeps_the_vectors(index: VectorIndex) -> None:
    await index.upsert("small", [point("one", 1, 0, 0)])
    assert not await index.prepare(SMALL)
    assert await index.count("small") == 1


async def test_a_dropped_model_leaves_nothing_and_the_others(index: VectorIndex) -> None:
    await index.upsert("small", [point("one", 1, 0, 0)])
    await index.upsert("BAAI/other-1.5", [point("two", 1, 0, 0, 0)])
    for _ in range(2):
        await index.drop("small")
    assert await index.prepare(SMALL)
    assert (await index.count("small"), await index.count("BAAI/other-1.5")) == (0, 1)


def test_points_and_collections_have_stable_names() -> None:
    assert point_id(key("one")) == point_id(key("one")) == "c83b16d3-adb2-56bd-810b-3e49370548c2"
    assert point_id(key("one")) != point_id(key("one", scope=ELSEWHERE))
    assert collection_of("BAAI/other-1.5").startswith("pml-baai-other-1-5-")
    assert collection_of("a/b") != collection_of("a-b")
