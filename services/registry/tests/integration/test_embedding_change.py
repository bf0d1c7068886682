"""The embedding model is data: missing vectors, and the change from one model to another."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest

from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_models import PostgresEmbeddingModels
from pml_registry.application.embedding import EmbeddingUpkeep
from pml_registry.application.serving import ServingModel
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_learning_updated import on_learning_updated
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.vectors import (
    Embedder,
    EmbedderUnavailable,
    EmbeddingModel,
    PointKey,
)
from services.registry.tests.support.builders import SCOPE, analysed, learning_update, listed, tool
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import Stores, stores_on
from services.registry.tests.support.vectors import HASH_MODEL, Renamed

pytestmark = pytest.mark.integration

NEWER = EmbeddingModel("newer", 384)
_STORED = "SELECT model, count(*) AS stored FROM search_vector GROUP BY model"
_INDEXES = "SELECT count(*) FROM pg_indexes WHERE indexname ~ '^search_vector_(tool|capability)_'"


@dataclass
class Deployment:
    """Stores in Postgres, the models, and an embedder for each."""

    pools: ScopedPools
    stores: Stores
    models: PostgresEmbeddingModels
    serving: ServingModel
    embedders: dict[str, Embedder]

    def embedder_of(self, model: str) -> Embedder:
        if model not in self.embedders:
            raise EmbedderUnavailable(f"no embedder of {model}")
        return self.embedders[model]

    def process(self, model: EmbeddingModel, *, dropped_after_s: float = 60.0) -> EmbeddingUpkeep:
        """A process that starts with this model in its settings."""

        async def wanted() -> EmbeddingModel:
            return model

        return EmbeddingUpkeep(
            self.models, self.embedder_of, wanted, dropped_after_s=dropped_after_s
        )

    async def discover(self, intent: str) -> DiscoveryPage:
        self.serving.refresh()
        query = Discover(scope=SCOPE, intent=intent)
        return await on_discover(query, self.serving, self.stores.index, self.stores.candidates)

    async def stored(self) -> dict[str, int]:
        return {row["model"]: row["stored"] for row in await self.pools.batch.fetch(_STORED)}

    async def states(self) -> dict[str, str]:
        return {each.model.name: each.state for each in await self.models.all()}


@pytest.fixture
async def deployment(postgres_dsn: str, embedder: Embedder) -> AsyncGenerator[Deployment]:
    """Three tools and a capability, embedded by the model `hash`."""
    async with open_scoped_schema(postgres_dsn, "registry", "pml_registry") as pools:
        models = PostgresEmbeddingModels(pools.batch)
        embedders: dict[str, Embedder] = {"hash": embedder}
        serving = ServingModel(models, lambda name: made.embedder_of(name))
        made = Deployment(pools, stores_on(pools), models, serving, embedders)
        await made.process(HASH_MODEL).keep_up()
        tools = [tool(f"fs:read_{at}", f"Returns file {at}.") for at in range(3)]
        await on_tools_listed(listed(*tools), made.stores.tools, serving)
        await StoreDriver(made.stores, serving).named("fs:show", analysed(intent="show a file"))
        await on_learning_updated([learning_update()], made.stores.capabilities, serving)
        yield made


async def test_the_first_model_serves_at_once(deployment: Deployment) -> None:
    assert await deployment.states() == {"hash": "serving"}
    assert await deployment.stored() == {"hash": 4}
    page = await deployment.discover("returns file 1")
    assert (page.hits[0].name, page.degraded) == ("read_1", False)


async def test_a_change_of_model_embeds_again_while_the_old_one_serves(
    deployment: Deployment, embedder: Embedder
) -> None:
    newer = Renamed(embedder, "newer", fails_after=0)
    deployment.embedders["newer"] = newer
    process = deployment.process(NEWER)
    await process.keep_up()
    assert await deployment.states() == {"hash": "serving", "newer": "preparing"}
    before = await deployment.discover("returns file 1")
    newer.fails_after = None
    await process.keep_up()
    assert await deployment.states() == {"hash": "retired", "newer": "serving"}
    assert (len(newer.texts), await deployment.stored()) == (4, {"hash": 4, "newer": 4})
    assert await deployment.discover("returns file 1") == before
    assert not before.degraded


async def test_a_former_model_is_dropped_once_nobody_uses_it(
    deployment: Deployment, embedder: Embedder
) -> None:
    deployment.embedders["newer"] = Renamed(embedder, "newer")
    await deployment.process(NEWER).keep_up()
    await deployment.process(NEWER).keep_up()
    assert await deployment.stored() == {"hash": 4, "newer": 4}
    assert await deployment.pools.batch.fetchval(_INDEXES) == 4
    await deployment.process(NEWER, dropped_after_s=0.0).keep_up()
    assert await deployment.states() == {"newer": "serving"}
    assert await deployment.stored() == {"newer": 4}
    assert await deployment.pools.batch.fetchval(_INDEXES) == 2
    assert not (await deployment.discover("returns file 1")).degraded


async def test_after_a_kill_the_rest_is_embedded(
    deployment: Deployment, embedder: Embedder
) -> None:
    await deployment.models.begin(NEWER)
    first, *rest = await deployment.models.unembedded("newer", None, 9)
    await deployment.models.fill("newer", [first], (await embedder.embed([first.text])).vectors)
    newer = Renamed(embedder, "newer")
    deployment.embedders["newer"] = newer
    await deployment.process(NEWER).keep_up()
    assert newer.texts == [each.text for each in rest]
    assert (await deployment.states())["newer"] == "serving"


async def test_what_is_missing_is_read_in_pages(deployment: Deployment) -> None:
    await deployment.models.begin(NEWER)
    found: list[str] = []
    after: PointKey | None = None
    while page := await deployment.models.unembedded("newer", after, 1):
        found += [each.key.id for each in page]
        after = page[-1].key
    assert found[1:] == ["fs:read_0", "fs:read_1", "fs:read_2"]
    assert len(found) == 4


async def test_a_text_that_changed_meanwhile_keeps_no_vector_of_the_former(
    deployment: Deployment, embedder: Embedder
) -> None:
    await deployment.models.begin(NEWER)
    missing = await deployment.models.unembedded("newer", None, 9)
    await on_tools_listed(
        listed(tool("fs:read_0", "Writes."), tool("fs:read_1", "Returns file 1.")),
        deployment.stores.tools,
        embedder,
    )
    vectors = (await embedder.embed([each.text for each in missing])).vectors
    await deployment.models.fill("newer", missing, vectors)
    assert await deployment.stored() == {"hash": 3, "newer": 2}
    left = await deployment.models.unembedded("newer", None, 9)
    assert [(each.key.id, each.text) for each in left] == [("fs:read_0", "fs: read 0. Writes.")]


async def test_what_is_stored_without_an_embedder_is_found_by_words_and_embedded_later(
    deployment: Deployment, embedder: Embedder
) -> None:
    away = Renamed(embedder, "hash", fails_after=0)
    deployment.embedders["hash"] = away
    deployment.serving.refresh()
    write = tool("fs:write", "Stores a text.")
    await on_tools_listed(listed(write), deployment.stores.tools, deployment.serving)
    named = analysed("c0de" * 16, intent="list folders", tools=[])
    await StoreDriver(deployment.stores, deployment.serving).named("fs:list", named)
    assert await deployment.stored() == {"hash": 1}
    page = await deployment.discover("store a text")
    assert ([hit.name for hit in page.hits], page.degraded) == (["write"], True)
    away.fails_after = None
    await deployment.process(HASH_MODEL).keep_up()
    assert await deployment.stored() == {"hash": 3}
    assert not (await deployment.discover("store a text")).degraded


async def test_one_process_at_a_time_embeds_what_is_missing(
    deployment: Deployment, embedder: Embedder
) -> None:
    deployment.embedders["newer"] = Renamed(embedder, "newer")
    async with deployment.models.turn() as is_ours:
        assert is_ours
        await deployment.process(NEWER).keep_up()
        assert await deployment.states() == {"hash": "serving", "newer": "preparing"}
    await deployment.process(NEWER).keep_up()
    assert (await deployment.states())["newer"] == "serving"


async def test_a_model_that_is_given_up_is_dropped(
    deployment: Deployment, embedder: Embedder
) -> None:
    deployment.embedders["newer"] = Renamed(embedder, "newer", fails_after=0)
    await deployment.process(NEWER).keep_up()
    await deployment.process(HASH_MODEL, dropped_after_s=0.0).keep_up()
    assert await deployment.states() == {"hash": "serving"}
    await deployment.process(NEWER).keep_up()
    assert await deployment.states() == {"hash": "serving", "newer": "preparing"}


async def test_a_model_of_another_dimension_needs_another_name(deployment: Deployment) -> None:
    with pytest.raises(ValueError, match="384: give the other model another name"):
        await deployment.models.begin(EmbeddingModel("hash", 3))


@pytest.mark.parametrize("dimension", [3, 2001, 4001])
async def test_vectors_of_any_dimension_are_searched(
    deployment: Deployment, dimension: int
) -> None:
    model = EmbeddingModel("wide", dimension)
    await deployment.models.begin(model)
    missing = await deployment.models.unembedded("wide", None, 9)
    vectors = [[float(at == place) for at in range(dimension)] for place, _ in enumerate(missing)]
    vectors = [vector[:dimension] if any(vector) else [1.0] * dimension for vector in vectors]
    await deployment.models.fill("wide", missing, vectors)
    found = await deployment.stores.index.nearest(SCOPE, "tool", "wide", vectors[1], 1)
    assert [each.id for each in found] == [missing[1].key.id]
    assert found[0].cosine == pytest.approx(1.0, abs=1e-3)
