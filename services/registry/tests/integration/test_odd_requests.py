"""Requests about records that are odd, repeated, or not for everyone;."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import pytest
from typing_extensions import override

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.dns import Fork, Rename, SetVisibility, Transfer, Yank
from pml_registry.domain.visibility import Viewer
from pml_registry.ports.vectors import Embedded, Embedder
from services.registry.tests.support.builders import AUTHOR, OTHER_HASH, SCOPE, analysed
from services.registry.tests.support.store_driver import StoreDriver

pytestmark = pytest.mark.integration

COLLEAGUE = Viewer(SCOPE, "agent-8")
SOME_ID = "2c74005b-cb3e-5279-b884-ba019d84029a"


def cursor(value: object) -> str:
    """A cursor that was made by somebody else."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize("place", [2**63, 2**31, 0, -5, "x"])
async def test_a_cursor_of_a_history_that_was_tampered_with_is_refused(
    known: StoreDriver, place: object
) -> None:
    with pytest.raises(QueryFailed, match="the cursor is none of ours") as failed:
        await known.history("fs:ensure", cursor=cursor(place))
    assert failed.value.code == "invalid"


@pytest.mark.parametrize(
    "place", [[2**63, "fs:ensure", SOME_ID], [-(2**63) - 1, "a", SOME_ID], [1, "a\x00b", SOME_ID]]
)
async def test_a_cursor_of_a_list_that_was_tampered_with_is_refused(
    known: StoreDriver, place: object
) -> None:
    with pytest.raises(QueryFailed, match="the cursor is none of ours") as failed:
        await known.query(cursor=cursor(place))
    assert failed.value.code == "invalid"


async def test_a_private_name_is_suggested_to_its_owner_alone(known: StoreDriver) -> None:
    await known.change("fs:ensure", SetVisibility(visibility="private"))
    with pytest.raises(QueryFailed, match="did you mean fs:ensure"):
        await known.lookup("fs:ensurr")
    with pytest.raises(QueryFailed) as failed:
        await known.lookup("fs:ensurr", COLLEAGUE)
    assert failed.value.message == "no capability 'fs:ensurr' in acme.webapp"
    for principal, near in ((AUTHOR, ("fs_ensure",)), (COLLEAGUE.principal, ())):
        (answer,) = await known.describe("fs_ensurr", principal=principal)
        assert answer.near == near


async def test_a_repetition_is_answered_though_its_reference_means_nothing_now(
    known: StoreDriver,
) -> None:
    request_id = uuid4()
    for _ in range(2):
        yanked = await known.change("fs:ensure@v1", Yank(reason="slow"), request_id=request_id)
        assert (yanked.changed, yanked.record.version) == (True, 1)
    await known.change("fs:ensure", SetVisibility(visibility="private"))
    given_id = uuid4()
    for _ in range(2):
        given = await known.change("fs:ensure", Transfer(owner="agent-8"), request_id=given_id)
        assert (given.changed, given.record.owner) == (True, "agent-8")


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("fs:ensure@v9", "fs:ensure@v9: no such version; there are: 2 (v1.1.0); 1"),
        ("fs:ensure@1x", "@1x selects no version: allowed are @latest, @3 (its number)"),
        ("fs:ensurr@1", "no capability 'fs:ensurr@1' in acme.webapp; did you mean fs:ensure?"),
    ],
)
async def test_a_program_is_told_which_versions_there_are(
    known: StoreDriver, reference: str, why: str
) -> None:
    (answer,) = await known.describe(reference)
    assert answer.capability is None
    assert (answer.refused or "").startswith(why)


class Listening(Embedder):
    """Remembers what it embeds."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.heard: list[str] = []

    @override
    async def model(self) -> str:
        return await self._embedder.model()

    @override
    async def embed(self, texts: Sequence[str]) -> Embedded:
        self.heard += texts
        return await self._embedder.embed(texts)


async def test_the_latest_version_is_found_by_a_new_name_whichever_is_named(
    known: StoreDriver,
) -> None:
    listening = Listening(known.service.embedder)
    known.service = replace(known.service, embedder=listening)
    await known.change("fs:ensure@1", Rename(name="fs:assure"))
    assert ["make sure" in text for text in listening.heard] == [True]


async def test_an_old_version_gets_no_name_that_would_lead_to_other_code(
    registry: StoreDriver,
) -> None:
    await registry.named("fs:ensure", analysed())
    second = analysed(OTHER_HASH)
    await registry.reserve("fs:ensure", second, update=True)
    await registry.settle(second)
    with pytest.raises(
        QueryFailed, match=r"this code is fs:ensure@1 .* lead to its version 2"
    ) as no:
        await registry.reserve("fs:make", analysed())
    assert no.value.message.endswith("run it as fs:ensure@1, or fork fs:ensure@1 as fs:make")
    await registry.change("fs:ensure@2", Yank(reason="wrong"))
    await registry.named("fs:make", analysed())
    assert (await registry.resolve("fs:make")).version == 1


async def test_code_in_several_records_gets_one_more_name_from_each_owner(
    registry: StoreDriver,
) -> None:
    await registry.named("fs:ensure", analysed())
    await registry.change("fs:ensure", Fork(name="fs:mine"), COLLEAGUE)
    await registry.named(
        "fs:make", analysed().model_copy(update={"principal": COLLEAGUE.principal})
    )
    assert (await registry.resolve("fs:make")).name == "fs:mine"
