"""Changes of the same records at once."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic
from typing import TypeVar
from uuid import uuid4

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.errors import QueryFailed
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.dns import (
    ChangedRecord,
    Fork,
    HistoryEntry,
    LabelRecord,
    RecordSummary,
    Rename,
    TagVersion,
)
from pml_common.storage.errors import StorageUnavailable
from services.registry.tests.support.builders import AUTHOR, OTHER_HASH, analysed
from services.registry.tests.support.store_driver import OWNER, StoreDriver

pytestmark = pytest.mark.integration

T = TypeVar("T")

WRITERS, FORKS = 50, 20


async def test_changes_at_once_lose_none(known: StoreDriver) -> None:
    labels = [f"t{number}" for number in range(20)]
    changes = [
        *(("fs:ensure", LabelRecord(add=(label,))) for label in labels),
        *(("fs:ensure", Rename(name=f"fs:n{n}")) for n in range(5)),
        *(("fs:ensure@1", TagVersion(version_tag=f"v{n}.0.0")) for n in range(5)),
    ]
    await asyncio.gather(
        *(_answered(partial(known.change, *each, request_id=uuid4())) for each in changes)
    )
    record = (await known.whois("fs:ensure")).record
    assert set(record.tags) == {*labels}
    history = await known.history("fs:ensure", limit=100)
    sequences = [entry.sequence for entry in reversed(history.entries)]
    assert sequences == [*range(1, 3 + 30 + 1)]
    renames = [entry.details for entry in reversed(history.entries) if entry.change == "renamed"]
    assert [each["from"] for each in renames[1:]] == [each["to"] for each in renames[:-1]]


async def test_fifty_writers_lose_no_update(known: StoreDriver) -> None:
    """Renaming, versioning, tagging and forking of the same records, all at once: once, or for
    as long as `make races` says."""
    await known.named("fs:second", analysed(OTHER_HASH))
    until = monotonic() + float(os.environ.get("PML_RACE_SECONDS", "0"))

    async def write(writer: int) -> int:
        """Return how many changes of this writer were made."""
        made = await _changes(known, writer, 0)
        turn = 1
        while monotonic() < until:
            made += await _changes(known, writer, turn)
            turn += 1
        return made

    made = sum(await asyncio.gather(*(write(writer) for writer in range(WRITERS))))
    records = await _every_record(known)
    names = [record.name for record in records]
    assert len(names) == len({*names})
    recorded = 0
    for record in records:
        whole = await _whole_history(known, str(record.record_id))
        assert [each.sequence for each in whole] == [*range(1, len(whole) + 1)]
        assert [each.at for each in whole] == sorted(each.at for each in whole)
        versions = [each.version for each in whole if each.change in ("created", "versioned")]
        assert versions == [*range(1, record.version + 1)] or whole[0].change == "forked"
        names_of = [each.details for each in whole if each.change == "renamed"]
        follows = [each["from"] for each in names_of[1:]]
        assert follows == [each["to"] for each in names_of[:-1]]
        assert not names_of or names_of[-1]["to"] == record.name
        tags = (await known.whois(str(record.record_id))).versions
        given = [each.version_tag for each in tags if each.version_tag]
        assert len(given) == len({*given})
        before = {"created", "named"} if record.name.startswith("fs:") else set[str]()
        recorded += len([each for each in whole if each.change not in before])
    # Two versions of `fs:ensure` were there before: one of them is in its history as `versioned`.
    assert recorded == made + 1


async def _changes(known: StoreDriver, writer: int, turn: int) -> int:
    """Make a change of each kind at once; return how many were made, the others being refused."""
    made, record = 0, "fs:ensure" if writer % 2 else "fs:second"
    number = turn * WRITERS + writer
    changes = (
        Rename(name=f"fs:name{number % 7}"),
        TagVersion(version_tag=f"v9.{number % 5}.0"),
        Fork(name=f"fs:fork{number % FORKS}"),
    )
    program = analysed(f"{number:064x}", principal=AUTHOR)
    wanted: list[Awaitable[object]] = [
        *(_answered(partial(known.change, record, one, request_id=uuid4())) for one in changes),
        _answered(partial(_next_version, known, record, program)),
    ]
    for done in await asyncio.gather(*wanted, return_exceptions=True):
        if isinstance(done, BaseException):
            assert isinstance(done, QueryFailed), done
            assert done.code == "conflict", done
        else:
            made += done.changed if isinstance(done, ChangedRecord) else 1
    return made


async def _answered(request: Callable[[], Awaitable[T]]) -> T:
    """Repeat a request, a change under its id, while the store does not answer it in time."""
    async with asyncio.timeout(4 * PATIENCE_S):
        while True:
            try:
                return await request()
            except StorageUnavailable:
                continue


async def _every_record(known: StoreDriver) -> list[RecordSummary]:
    records: list[RecordSummary] = []
    cursor: str | None = None
    while True:
        asked = partial(known.query, OWNER, include_unlisted=True, limit=200, cursor=cursor)
        page = await _answered(asked)
        records += page.records
        cursor = page.next_cursor
        if cursor is None:
            return records


async def _next_version(known: StoreDriver, record: str, program: ExecutionAnalyzed) -> int:
    await known.reserve(record, program, update=True)
    await known.settle(program)
    return 1


async def _whole_history(known: StoreDriver, reference: str) -> list[HistoryEntry]:
    """All changes, the oldest first."""
    entries: list[HistoryEntry] = []
    cursor: str | None = None
    while True:
        page = await known.history(reference, limit=100, cursor=cursor)
        entries += page.entries
        cursor = page.next_cursor
        if cursor is None:
            return entries[::-1]
