"""A private record of another principal in the scope, by every query."""

from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from pml_common.bus.errors import QueryFailed
from pml_common.contracts import ids
from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.dns import Change, Fork, LabelRecord, Rename, SetVisibility, Transfer
from pml_common.contracts.registry import (
    Discover,
    ListCapabilities,
    ResolveCapability,
    SetCachePolicy,
)
from pml_registry.domain.dependencies import NewDependency
from pml_registry.domain.visibility import Viewer
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_list_capabilities import on_list_capabilities
from pml_registry.entrypoints.bus.on_resolve_capability import on_resolve_capability
from pml_registry.entrypoints.bus.on_set_cache_policy import on_set_cache_policy
from pml_registry.entrypoints.bus.with_dependencies import list_counted, resolve_counted
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import (
    AUTHOR,
    OTHER_HASH,
    SCOPE,
    analysed,
    learning_update,
)
from services.registry.tests.support.curation_driver import CurationDriver
from services.registry.tests.support.dependencies import GraphDriver
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration

SECRET = "vault"
"""In the private record's name, intent and code, and in no reference that a stranger gives here."""
OWNER, STRANGER = "mira", "noor"
BY = Viewer(SCOPE, STRANGER)
HASH = "5ec7" * 16


@pytest.fixture
async def hidden(registry: StoreDriver) -> UUID:
    """The record `vault:open` is private to mira; `fs:ensure` is for all of the scope."""
    await registry.named("fs:ensure", analysed(OTHER_HASH))
    private = analysed(
        HASH,
        intent="open the vault",
        code="return await mcp.fs.read({path: 'vault'})",
        principal=OWNER,
    )
    await registry.named("vault:open", private)
    for code_hash in (OTHER_HASH, HASH):
        await registry.learned(learning_update(3, code_hash=code_hash))
    owner = Viewer(SCOPE, OWNER)
    changed = await registry.change("vault:open", Rename(name="vault:unlock"), owner)
    await registry.change("vault:unlock", SetVisibility(visibility="private"), owner)
    return changed.record.record_id


def _references(record_id: UUID) -> list[str]:
    behaviour = ids.capability_id(SCOPE, HASH)
    fqdn = f"{SCOPE.org}.{SCOPE.project}.vault.unlock.{record_id.hex[:4]}"
    names = ["vault:unlock", "vault:open", "vault:unlock@v1", "vault:unlok", "cap:vault:open@1"]
    callables = ["vault_unlock", f"vault_unlock_{behaviour.hex[-4:]}"]
    return [*names, *callables, str(record_id), str(behaviour), fqdn, f"cap:{SCOPE}:vault:open"]


async def _told(asked: Awaitable[BaseModel]) -> str:
    """Return the answer, or the error."""
    try:
        return (await asked).model_dump_json()
    except QueryFailed as failure:
        return f"{failure.code}: {failure.message}"


async def test_no_reference_leads_a_stranger_to_it(
    hidden: UUID, registry: StoreDriver, stores: Stores
) -> None:
    async def resolve(reference: str) -> BaseModel:
        query = ResolveCapability(scope=SCOPE, principal=STRANGER, reference=reference)
        return await on_resolve_capability(query, registry.resolution)

    async def cache(reference: str) -> BaseModel:
        query = SetCachePolicy(
            scope=SCOPE, principal=STRANGER, reference=reference, cache=CacheSettings()
        )
        return await on_set_cache_policy(query, registry.resolution, stores.tools)

    async def described(reference: str) -> BaseModel:
        (found,) = await registry.describe(reference, principal=STRANGER)
        return found

    def changed(change: Change) -> Callable[[str], Awaitable[BaseModel]]:
        return lambda reference: registry.change(reference, change, BY, request_id=uuid4())

    asking: list[Callable[[str], Awaitable[BaseModel]]] = [
        resolve,
        cache,
        described,
        lambda reference: registry.lookup(reference, BY),
        lambda reference: registry.whois(reference, BY),
        lambda reference: registry.history(reference, principal=STRANGER),
        *map(
            changed,
            (
                Rename(name="fs:mine"),
                Fork(name="fs:copy"),
                Transfer(owner=STRANGER),
                LabelRecord(add=("seen",)),
                SetVisibility(visibility="public"),
            ),
        ),
    ]
    for reference in _references(hidden):
        for ask in asking:
            told = (await _told(ask(reference))).replace(reference, "")
            assert SECRET not in told, (reference, told)
            assert OWNER not in told, (reference, told)
    kept = await registry.whois("vault:unlock", Viewer(SCOPE, OWNER))
    assert (kept.record.owner, kept.record.visibility) == (OWNER, "private")


async def test_no_list_shows_it_to_a_stranger(
    hidden: UUID,
    registry: StoreDriver,
    curation: CurationDriver,
    stores: Stores,
    embedder: Embedder,
) -> None:
    asked = ListCapabilities(scope=SCOPE, principal=STRANGER, include_unlisted=True)
    found = Discover(scope=SCOPE, principal=STRANGER, intent="open the vault", min_score=0)
    told = [
        await on_list_capabilities(asked, stores.capabilities),
        await on_discover(found, embedder, stores.index, stores.candidates),
        await registry.query(BY, include_unlisted=True, include_unnamed=True, reach="public"),
        await registry.query(BY, text="vault"),
        await registry.query(BY, visibility="private"),
        await curation.curate(principal=STRANGER),
        *await registry.describe("fs_insure", "vault_open", principal=STRANGER),
    ]
    for page in told:
        text = page.model_dump_json().replace('"reference":"vault_open"', "")
        assert SECRET not in text, text
    own = asked.model_copy(update={"principal": OWNER})
    assert SECRET in (await on_list_capabilities(own, stores.capabilities)).model_dump_json()


async def test_its_dependencies_are_neither_listed_nor_counted_for_a_stranger(
    hidden: UUID, stores: Stores, embedder: Embedder
) -> None:
    graph = GraphDriver(stores, embedder)
    secret, ensure = (ids.capability_id(SCOPE, each) for each in (HASH, OTHER_HASH))
    for one, other in ((secret, ensure), (ensure, secret)):
        new = NewDependency(one, other, "alternative", "template")
        await stores.dependencies.add(SCOPE, new)

    async def counts(principal: str | None) -> tuple[int, int, int]:
        asked = ResolveCapability(
            scope=SCOPE, principal=principal, reference="fs:ensure", count_dependencies=True
        )
        one = await resolve_counted(asked, graph.resolve, stores.dependencies)
        listing = ListCapabilities(scope=SCOPE, principal=principal)
        every = await list_counted(
            listing,
            lambda query: on_list_capabilities(query, stores.capabilities),
            stores.dependencies,
        )
        (row,) = (each for each in every.capabilities if each.name == "fs:ensure")
        page = await graph.page("fs:ensure", principal=principal)
        return one.dependencies_count or 0, row.dependencies_count or 0, page.total

    assert await counts(STRANGER) == await counts(AUTHOR) == (0, 0, 0)
    assert await counts(OWNER) == await counts(None) == (2, 2, 2)
    assert SECRET not in (await graph.hypergraph(principal=STRANGER)).model_dump_json()


async def test_its_name_is_taken_and_its_holder_is_not_told(
    hidden: UUID, registry: StoreDriver
) -> None:
    other = analysed("0123" * 16, principal=STRANGER)
    same_code = analysed(HASH, principal=STRANGER)
    stranger = Viewer(SCOPE, STRANGER)
    await registry.named("fs:mine", analysed("4567" * 16, principal=STRANGER))
    for asked in (
        registry.reserve("vault:unlock", other),
        registry.reserve("vault:open", other, update=True),
        registry.reserve("fs:copy", same_code),
        registry.change("fs:mine", Rename(name="vault:unlock"), stranger),
        registry.change("fs:ensure", Fork(name="vault:open"), stranger),
    ):
        told = (await _told(asked)).replace("vault:unlock is taken", "")
        assert told.startswith("conflict: ")
        assert OWNER not in told, told
        assert "unlock" not in told, told
